#include "limiter/io/reactor.hpp"

#include "limiter/io/system_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace headgate {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t clients_a_turn = 32;         // then upstreams are asked for again
constexpr std::size_t most_read_ahead = 64 * 1024; // bytes of a group: the next one is read when they are sent
constexpr std::uint32_t for_reading = EPOLLIN | EPOLLRDHUP | EPOLLET;

error_code last_error() { return {errno, boost::system::system_category()}; }

int checked(int fd, const char* made_by)
{
    if (fd < 0)
        throw std::system_error(errno, std::system_category(), made_by);
    return fd;
}

} // namespace

reactor::reactor()
    : set_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd"))
{
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    checked(::epoll_ctl(set_, EPOLL_CTL_ADD, wake_, &event), "epoll_ctl");
}

reactor::~reactor()
{
    ::close(wake_);
    ::close(set_);
}

void reactor::run()
{
    constexpr std::chrono::hours very_long{1};
    while (!is_stopped_ || has_work() || !timers_.empty())
        turn(very_long);
}

// Something to do that the kernel will not tell of.
bool reactor::has_work() const { return first_waiting_ || !resumed_.empty() || !ending_.empty(); }

void reactor::turn(std::chrono::nanoseconds at_most)
{
    if (has_work())
        at_most = 0ns;
    else if (!timers_.empty())
        at_most = std::clamp<std::chrono::nanoseconds>(timers_.nearest() - turn_began_, 0ns, at_most);
    sort_events(ask_kernel(at_most));
    begin_turn();
    call_posted();
    handle_ready();
    take_clients();
    handle_ready();
    resume_all();
    timers_.expire(turn_began_);
    end_turn();
    step_on();
}

int reactor::ask_kernel(std::chrono::nanoseconds at_most)
{
    constexpr long a_second = 1'000'000'000;
    constexpr std::chrono::nanoseconds rounds_up{999'999};
    const timespec time{at_most.count() / a_second, at_most.count() % a_second};
    const int count = ::epoll_pwait2(set_, events_.data(), static_cast<int>(batch), &time, nullptr);
    if (count >= 0 || errno != ENOSYS)
        return count;
    // A kernel before 5.11, or a sandbox that does not know the call: whole milliseconds.
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(at_most + rounds_up);
    return ::epoll_wait(set_, events_.data(), static_cast<int>(batch), static_cast<int>(whole.count()));
}

// Those who come first, and those who wait for them.
void reactor::sort_events(int count)
{
    next_ = count_ = 0;
    for (int i = 0; i < count && !is_stopped_; ++i) {
        const auto& event = events_[static_cast<std::size_t>(i)];
        auto* const ready = static_cast<tcp_socket*>(event.data.ptr); // null: the call that woke us
        if (!ready)
            continue;
        if (ready->waits_)
            push_waiting(*ready, event.events);
        else
            ready_[count_++] = {ready, event.events};
    }
}

void reactor::take_clients()
{
    while (count_ < clients_a_turn && first_waiting_) {
        ready_[count_++] = {first_waiting_, first_waiting_->waiting_events_};
        drop_waiting(*first_waiting_);
    }
}

// Group by group, and each small enough for what it works with to stay in the cache: first all are read, then all go
// on, step by step where they keep step.
void reactor::handle_ready()
{
    while (next_ < count_ && !is_stopped_) {
        std::size_t end = next_, bytes = 0;
        for (; end < count_ && end - next_ < most_in_step && bytes < most_read_ahead; ++end) {
            if (auto* const ready = ready_[end].who)
                bytes += ready->note(ready_[end].events);
        }
        keep_step(end - next_ > 1);
        while (next_ < end) {
            const auto [ready, events] = ready_[next_++];
            if (ready && !is_stopped_)
                ready->go_on(events);
        }
        step_on();
    }
    next_ = count_ = 0;
}

void reactor::step_on()
{
    while (in_step_.count > 0) {
        const auto going = in_step_;
        in_step_.count = 0;
        keep_step(going.count > 1);
        for (std::size_t i = 0; i < going.count; ++i)
            going.who[i].resume();
    }
    keeps_step_ = false;
}

void reactor::post(std::function<void()> what)
{
    const std::lock_guard guard(posting_);
    posted_.push_back(std::move(what));
    is_posted_.store(true, std::memory_order_release);
    ::eventfd_write(wake_, 1); // an edge each time; nobody reads it
}

// Before any socket: a request that comes after a reload was posted meets the new configuration.
void reactor::call_posted()
{
    if (!is_posted_.load(std::memory_order_acquire)) [[likely]]
        return;
    std::vector<std::function<void()>> calls;
    {
        const std::lock_guard guard(posting_);
        calls.swap(posted_);
        is_posted_.store(false, std::memory_order_relaxed);
    }
    for (const auto& call : calls)
        call();
}

void reactor::resume_all()
{
    resuming_.swap(resumed_);
    for (const auto waiting : resuming_)
        waiting.resume();
    resuming_.clear();
}

void reactor::at_turn_end(turn_end& what)
{
    if (!std::exchange(what.is_queued_, true))
        ending_.push_back(&what);
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
    for (auto i = next_; i < count_; ++i) {
        if (ready_[i].who == &gone)
            ready_[i].who = nullptr;
    }
}

void tcp_socket::adopt(int fd)
{
    fd_ = fd;
    readable_ = true;
    ended_ = false;
    watched_ = 0;
}

bool tcp_socket::adopt_connecting(int fd)
{
    adopt(fd);
    readable_ = false; // there is nothing to read yet
    if (watch_for(for_reading | EPOLLOUT))
        return true;
    const auto why = errno;
    close();
    errno = why;
    return false;
}

// False when the kernel will not: errno says why.
bool tcp_socket::watch_for(std::uint32_t events)
{
    epoll_event event{};
    event.events = events;
    event.data.ptr = this;
    if (::epoll_ctl(reactor_.set_, watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd_, &event) != 0)
        return false;
    watched_ = events;
    return true;
}

// True when a wait for something to read can begin. What is there already is told of at once.
bool tcp_socket::watch()
{
    if (watched_ != 0 || watch_for(for_reading)) [[likely]]
        return true;
    read_result_ = {last_error(), 0};
    return false;
}

void tcp_socket::cancel()
{
    if (reader_) {
        is_read_ = false;
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

bool tcp_socket::try_read(char* at, std::size_t most, read_ahead* ahead)
{
    if (!at) {
        read_result_ = {{}, ahead ? ahead->on_readable() : 0};
        return true;
    }
    for (;;) {
        const auto n = receive(fd_, at, most);
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

std::optional<io_result> tcp_socket::read_now(kernel_pipe& into, std::size_t most)
{
    while (readable_) {
        const auto n = into.fill_from(fd_, most);
        if (n > 0)
            return io_result{{}, static_cast<std::size_t>(n)}; // how much is left the pipe does not tell
        if (n == 0)
            return io_result{asio::error::eof, 0};
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            readable_ = false;
        else if (errno != EINTR)
            return io_result{last_error(), 0};
    }
    return std::nullopt;
}

// True when the wait can begin.
bool tcp_socket::watch_writable()
{
    write_result_ = {};
    if (fd_ < 0) {
        write_result_ = {asio::error::bad_descriptor, 0};
        return false;
    }
    if ((watched_ & EPOLLOUT) != 0 || watch_for(for_reading | EPOLLOUT))
        return true;
    write_result_ = {last_error(), 0};
    return false;
}

// What the kernel says; who waits for it is read for. How much that was.
std::size_t tcp_socket::note(std::uint32_t events)
{
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        ended_ = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        readable_ = true;
        is_read_ = reader_ && try_read(read_at_, read_most_, ahead_);
    }
    return is_read_ ? read_result_.bytes : 0;
}

void tcp_socket::go_on(std::uint32_t events)
{
    if (std::exchange(is_read_, false)) {
        auto& in = reactor_;
        in.handled_ = this;
        std::exchange(reader_, {}).resume();
        if (std::exchange(in.handled_, nullptr) != this)
            return; // the reader has closed this socket
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) && writer_)
        std::exchange(writer_, {}).resume();
}

bool tcp_socket::send_now(kernel_pipe& from)
{
    while (from.held() > 0) {
        const auto n = from.empty_into(fd_);
        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    return true;
}

bool tcp_socket::send_last_now(std::string_view& first, std::string_view& second)
{
    // What was not taken at once is sent later, as usual: then closing the socket tells the end.
    if (!send_now(first, second, MSG_MORE))
        return false;
    if (first.empty() && second.empty())
        ::shutdown(fd_, SHUT_WR);
    return true;
}

bool tcp_socket::send_now(std::string_view& first, std::string_view& second, int flags)
{
    while (!first.empty() || !second.empty()) {
        ssize_t n = 0;
        if (!first.empty() && !second.empty()) {
            iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                             {const_cast<char*>(second.data()), second.size()}};
            msghdr message{};
            message.msg_iov = parts;
            message.msg_iovlen = 2;
            n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | flags);
        } else {
            const auto rest = first.empty() ? second : first;
            n = send_bytes(fd_, rest.data(), rest.size(), flags);
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
