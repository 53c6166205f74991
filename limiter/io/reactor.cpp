#include "limiter/io/reactor.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace headgate {

namespace {

constexpr int turns_before_others = 8; // batches in a row, then timers and posted work get their turn
constexpr int clients_a_turn = 32;     // then upstreams are asked for again

error_code last_error() { return {errno, boost::system::system_category()}; }

// Gives the pending wait its memory from the thread's pool.
template <class F>
struct pooled_handler
{
    using allocator_type = pool_allocator<void>;
    allocator_type get_allocator() const noexcept { return {}; }
    template <class... Arguments>
    void operator()(Arguments... arguments) const
    {
        act(arguments...);
    }
    F act;
};
template <class F>
pooled_handler(F) -> pooled_handler<F>;

} // namespace

reactor::reactor(asio::io_context& io) : io_(io), set_(io.get_executor())
{
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        throw std::system_error(errno, std::system_category(), "epoll_create1");
    set_.assign(fd);
    wait();
}

void reactor::stop()
{
    error_code ignored;
    set_.cancel(ignored);
}

void reactor::wait()
{
    set_.async_wait(asio::posix::descriptor_base::wait_read, pooled_handler{[this](const error_code& error) {
                        if (error)
                            return;
                        handle_ready();
                        wait();
                    }});
}

void reactor::handle_ready()
{
    for (int i = 0; i < turns_before_others; ++i) {
        if (!handle_some())
            return;
    }
    if (!first_waiting_ || is_coming_back_)
        return;
    is_coming_back_ = true; // the kernel will not tell of them again
    asio::post(io_, [this] {
        is_coming_back_ = false;
        handle_ready();
    });
}

// False when nobody was ready.
bool reactor::handle_some()
{
    count_ = ::epoll_wait(set_.native_handle(), events_.data(), static_cast<int>(batch), 0);
    if (count_ <= 0 && !first_waiting_)
        return false;
    begin_turn();
    in_turn_ = true;
    for (next_ = 0; next_ < count_;) {
        const auto event = events_[static_cast<std::size_t>(next_++)];
        auto* const ready = static_cast<tcp_socket*>(event.data.ptr);
        if (ready && ready->waits_)
            push_waiting(*ready, event.events);
        else if (ready)
            ready->on_events(event.events);
    }
    count_ = next_ = 0;
    for (int i = 0; i < clients_a_turn && first_waiting_; ++i) {
        auto& client = *first_waiting_;
        const auto events = client.waiting_events_;
        drop_waiting(client);
        client.on_events(events);
    }
    in_turn_ = false;
    end_turn();
    return true;
}

void reactor::at_turn_end(turn_end& what)
{
    if (std::exchange(what.is_queued_, true))
        return;
    ending_.push_back(&what);
    if (!in_turn_ && ending_.size() == 1)
        asio::post(io_, [this] { end_turn(); });
}

void reactor::forget(turn_end& gone)
{
    if (std::exchange(gone.is_queued_, false))
        std::erase(ending_, &gone);
}

void reactor::end_turn()
{
    while (!ending_.empty()) {
        auto& what = *ending_.back();
        ending_.pop_back();
        what.is_queued_ = false;
        what.on_turn_end();
    }
}

void reactor::push_waiting(tcp_socket& s, std::uint32_t events)
{
    const bool is_listed = s.waiting_events_ != 0;
    s.waiting_events_ |= events;
    if (is_listed || events == 0)
        return;
    s.earlier_ = last_waiting_;
    (last_waiting_ ? last_waiting_->later_ : first_waiting_) = &s;
    last_waiting_ = &s;
}

void reactor::drop_waiting(tcp_socket& s)
{
    (s.earlier_ ? s.earlier_->later_ : first_waiting_) = s.later_;
    (s.later_ ? s.later_->earlier_ : last_waiting_) = s.earlier_;
    s.earlier_ = s.later_ = nullptr;
    s.waiting_events_ = 0;
}

// Somebody else's event made this socket go away: what is left of the batch must not reach it.
void reactor::forget(tcp_socket& gone)
{
    if (handled_ == &gone)
        handled_ = nullptr;
    if (gone.waiting_events_ != 0)
        drop_waiting(gone);
    for (int i = next_; i < count_; ++i) {
        if (events_[static_cast<std::size_t>(i)].data.ptr == &gone)
            events_[static_cast<std::size_t>(i)].data.ptr = nullptr;
    }
}

void reactor::resume_later(std::coroutine_handle<> waiting)
{
    resumed_.push_back(waiting);
    if (resumed_.size() > 1)
        return;
    asio::post(io_, [this] {
        begin_turn();
        resuming_.swap(resumed_);
        for (const auto h : resuming_)
            h.resume();
        resuming_.clear();
    });
}

bool tcp_socket::adopt(int fd, bool also_writable)
{
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (also_writable ? EPOLLOUT : 0u);
    event.data.ptr = this;
    if (::epoll_ctl(reactor_.set_.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) {
        ::close(fd);
        return false;
    }
    fd_ = fd;
    readable_ = !also_writable; // a connection that is still being made has nothing to read
    ended_ = false;
    writable_watched_ = also_writable;
    return true;
}

void tcp_socket::cancel()
{
    if (reader_) {
        read_result_ = {asio::error::operation_aborted, 0};
        reactor_.resume_later(std::exchange(reader_, {}));
    }
    if (writer_) {
        write_result_ = {asio::error::operation_aborted, 0};
        reactor_.resume_later(std::exchange(writer_, {}));
    }
}

void tcp_socket::close()
{
    if (fd_ < 0)
        return;
    cancel();
    reactor_.forget(*this);
    ::close(std::exchange(fd_, -1));
    readable_ = true; // whoever reads from now on learns at once that it is closed
}

bool tcp_socket::try_read(char* at, std::size_t most)
{
    if (!at) {
        read_result_ = {};
        return true;
    }
    for (;;) {
        const auto n = ::recv(fd_, at, most, 0);
        if (n > 0) {
            // A short read has emptied the socket: what comes next raises an edge of its own.
            readable_ = ended_ || static_cast<std::size_t>(n) == most;
            read_result_ = {{}, static_cast<std::size_t>(n)};
            return true;
        }
        if (n == 0) {
            read_result_ = {asio::error::eof, 0};
            return true;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            readable_ = false;
            return false;
        }
        if (errno != EINTR) {
            read_result_ = {last_error(), 0};
            return true;
        }
    }
}

// True when the wait can begin.
bool tcp_socket::watch_writable()
{
    write_result_ = {};
    if (fd_ < 0) {
        write_result_ = {asio::error::bad_descriptor, 0};
        return false;
    }
    if (writable_watched_)
        return true;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = this;
    if (::epoll_ctl(reactor_.set_.native_handle(), EPOLL_CTL_MOD, fd_, &event) != 0) {
        write_result_ = {last_error(), 0};
        return false;
    }
    writable_watched_ = true;
    return true;
}

void tcp_socket::on_events(std::uint32_t events)
{
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        ended_ = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        readable_ = true;
        if (reader_ && try_read(read_at_, read_most_)) {
            auto& in = reactor_;
            in.handled_ = this;
            std::exchange(reader_, {}).resume();
            if (std::exchange(in.handled_, nullptr) != this)
                return; // the reader has closed this socket
        }
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) && writer_)
        std::exchange(writer_, {}).resume();
}

bool tcp_socket::send_now(std::string_view& first, std::string_view& second)
{
    while (!first.empty() || !second.empty()) {
        ssize_t n = 0;
        if (!first.empty() && !second.empty()) {
            iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                             {const_cast<char*>(second.data()), second.size()}};
            msghdr message{};
            message.msg_iov = parts;
            message.msg_iovlen = 2;
            n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
        } else {
            const auto rest = first.empty() ? second : first;
            n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
        }
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        const auto from_first = std::min(first.size(), static_cast<std::size_t>(n));
        first.remove_prefix(from_first);
        second.remove_prefix(static_cast<std::size_t>(n) - from_first);
    }
    return true;
}

} // namespace headgate
