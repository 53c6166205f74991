// bench_floor: the least that a proxy can cost. One thread, epoll, one upstream connection per client; it relays bytes
// without reading them: recv, send, recv, send. A proxy that reads what it forwards cannot cost less. usage:
// bench_floor LISTEN_PORT UPSTREAM_PORT
#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>

namespace {

sockaddr_in at_port(const char* text)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(text)));
    return address;
}

void disable_nagle(int fd)
{
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void watch(int set, int fd)
{
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 3)
        return 2;
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const auto own = at_port(arguments[1]), upstream = at_port(arguments[2]);
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 || ::listen(listener, 4096) != 0)
        return 1;
    const int set = ::epoll_create1(0);
    watch(set, listener);
    std::unordered_map<int, int> other; // the two ends of a relay
    epoll_event events[64];
    char bytes[65536];
    for (;;) {
        const int ready = ::epoll_wait(set, events, 64, -1);
        for (int i = 0; i < ready; ++i) {
            const int fd = events[i].data.fd;
            if (fd == listener) {
                const int client = ::accept(listener, nullptr, nullptr);
                const int server = ::socket(AF_INET, SOCK_STREAM, 0);
                if (::connect(server, reinterpret_cast<const sockaddr*>(&upstream), sizeof upstream) != 0)
                    return 1;
                disable_nagle(client);
                disable_nagle(server);
                other[client] = server;
                other[server] = client;
                watch(set, client);
                watch(set, server);
                continue;
            }
            const auto pair = other.find(fd);
            if (pair == other.end())
                continue; // closed a moment ago together with its other end
            const auto got = ::recv(fd, bytes, sizeof bytes, 0);
            if (got > 0 && ::send(pair->second, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL) == got)
                continue;
            const int there = pair->second;
            other.erase(fd);
            other.erase(there);
            ::close(fd);
            ::close(there);
        }
    }
}
