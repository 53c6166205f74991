#include "bench/load/origin.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string_view>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace load {

namespace {

std::string make_answer(std::size_t bytes)
{
    std::string all =
        "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: ";
    all += std::to_string(bytes) + "\r\n\r\n";
    all.append(bytes, 'x');
    return all;
}

const std::string small = make_answer(128), large = make_answer(64 << 10), huge = make_answer(10 << 20);

const std::string& answer_to(std::string_view head)
{
    const auto line = head.substr(0, head.find('\r'));
    const auto path = line.substr(0, line.rfind(' '));
    return path.ends_with("/large") ? large : path.ends_with("/huge") ? huge : small;
}

std::size_t body_of(std::string_view head)
{
    for (auto line = head.find("\r\n"); line != head.npos && line + 17 < head.size();
         line = head.find("\r\n", line + 2)) {
        const char* field = head.data() + line + 2;
        if (::strncasecmp(field, "content-length:", 15) == 0)
            return std::strtoull(field + 15, nullptr, 10);
    }
    return 0;
}

} // namespace

origin::origin(std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    socklen_t size = sizeof address;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener_, 4096) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::runtime_error("the origin cannot listen on port " + std::to_string(port));
    port_ = ntohs(address.sin_port);
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(set_, EPOLL_CTL_ADD, listener_, &event);
}

origin::~origin()
{
    for (const auto& [fd, one] : peers_)
        ::close(fd);
    ::close(listener_);
    ::close(set_);
}

bool origin::serve_ready()
{
    epoll_event events[256];
    const int ready = ::epoll_wait(set_, events, 256, 0);
    for (int i = 0; i < ready; ++i) {
        auto* one = static_cast<peer*>(events[i].data.ptr);
        if (!one)
            accept();
        else if (!on_event(*one))
            close(*one);
    }
    return ready > 0;
}

void origin::accept()
{
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto& kept = peers_[fd] = std::make_unique<peer>();
    kept->fd = fd;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = kept.get();
    ::epoll_ctl(set_, EPOLL_CTL_ADD, fd, &event);
}

void origin::close(peer& one)
{
    const int fd = one.fd;
    peers_.erase(fd);
    ::close(fd);
}

// Returns false when the peer is gone.
bool origin::send_answer(peer& one)
{
    while (one.sent < one.answer->size()) {
        const auto done = ::send(one.fd, one.answer->data() + one.sent, one.answer->size() - one.sent, MSG_NOSIGNAL);
        if (done < 0)
            return errno == EAGAIN;
        one.sent += static_cast<std::size_t>(done);
    }
    one.answer = nullptr;
    return true;
}

// Answers every complete request in `one.in`, as far as the socket accepts it.
bool origin::answer_requests(peer& one)
{
    for (;;) {
        if (one.answer) {
            if (one.swallowing > 0) {
                const auto part = std::min(one.swallowing, one.in.size());
                one.in.erase(0, part);
                one.swallowing -= part;
                if (one.swallowing > 0)
                    return true;
            }
            if (!send_answer(one))
                return false;
            if (one.answer)
                return true; // the rest follows when the socket has room
        }
        const auto end = one.in.find("\r\n\r\n");
        if (end == one.in.npos)
            return one.in.size() < 65536;
        const std::string_view head(one.in.data(), end + 2);
        one.answer = &answer_to(head);
        one.sent = 0;
        one.swallowing = body_of(head);
        one.in.erase(0, end + 4);
    }
}

bool origin::on_event(peer& one)
{
    char bytes[65536];
    for (;;) {
        const auto got = ::recv(one.fd, bytes, sizeof bytes, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        if (got < 0)
            break;
        one.in.append(bytes, static_cast<std::size_t>(got));
        if (static_cast<std::size_t>(got) < sizeof bytes)
            break; // further bytes raise a new event
    }
    return answer_requests(one);
}

} // namespace load
