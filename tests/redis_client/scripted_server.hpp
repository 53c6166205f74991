// A server scripted by a test: it runs `act(fd)` for every connection, one after the other, on its own thread.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace headgate::testing {

class scripted_server
{
public:
    explicit scripted_server(std::function<void(int)> act) : act_(std::move(act))
    {
        listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        REQUIRE(::bind(listening_, reinterpret_cast<sockaddr*>(&at), size) == 0);
        REQUIRE(::listen(listening_, 16) == 0);
        ::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size);
        port = ntohs(at.sin_port);
        thread_ = std::thread([this] {
            for (;;) {
                const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
                if (fd < 0)
                    return;
                act_(fd);
                ::close(fd);
            }
        });
    }
    ~scripted_server()
    {
        ::shutdown(listening_, SHUT_RDWR);
        thread_.join();
        ::close(listening_);
    }
    std::uint16_t port = 0;

private:
    std::function<void(int)> act_;
    int listening_ = -1;
    std::thread thread_;
};

inline void say(int fd, std::string_view text)
{
    static_cast<void>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL));
}
// Reads until the text holds `end`, or the connection ends.
inline std::string hear(int fd, std::string_view end)
{
    std::string all;
    char bytes[4096];
    while (all.find(end) == all.npos) {
        const auto n = ::recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0)
            break;
        all.append(bytes, static_cast<std::size_t>(n));
    }
    return all;
}
// Accepts the login of a client without a password.
inline void accept_login(int fd)
{
    hear(fd, "headgate\r\n");
    say(fd, "+OK\r\n");
}

} // namespace headgate::testing
