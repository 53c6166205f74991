// Bodies of many tiny chunks: chunks that were read together are sent together. The C library's send and sendmsg are
// replaced to count the calls for one port, because the kernel joins segments before a receiver can see them.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace headgate::tests;

namespace {

constexpr std::size_t chunks = 2000;
constexpr std::size_t few = chunks / 20; // several reads may be needed; one send per chunk would be far more

std::string tiny_chunks()
{
    std::string out;
    for (std::size_t i = 0; i < chunks; ++i)
        out += "1\r\nx\r\n";
    return out + "0\r\n\r\n";
}

std::atomic<std::uint16_t> watched_port{0}; // 0: none
std::atomic<std::size_t> sends{0};

void count_send(int fd)
{
    const auto port = watched_port.load();
    sockaddr_in to{};
    socklen_t size = sizeof to;
    if (port != 0 && ::getpeername(fd, reinterpret_cast<sockaddr*>(&to), &size) == 0 && ntohs(to.sin_port) == port)
        ++sends;
}

// Counts the sends of this process to `port` during its lifetime.
class sends_to
{
public:
    explicit sends_to(std::uint16_t port)
    {
        sends = 0;
        watched_port = port;
    }
    ~sends_to() { watched_port = 0; }
    std::size_t seen() const { return sends; }
};

std::uint16_t own_port(const raw_connection& of)
{
    sockaddr_in own{};
    socklen_t size = sizeof own;
    CHECK(::getsockname(of.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
    return ntohs(own.sin_port);
}

} // namespace

// Replaces the C library's function.
extern "C" ssize_t send(int fd, const void* bytes, std::size_t size, int flags)
{
    static const auto real = reinterpret_cast<decltype(&::send)>(::dlsym(RTLD_NEXT, "send"));
    count_send(fd);
    return real(fd, bytes, size, flags);
}
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags)
{
    static const auto real = reinterpret_cast<decltype(&::sendmsg)>(::dlsym(RTLD_NEXT, "sendmsg"));
    count_send(fd);
    return real(fd, message, flags);
}

TEST_CASE("gather: an upload of tiny chunks is not sent chunk by chunk")
{
    raw_upstream up([](raw_upstream& self, raw_connection& from) {
        self.record(from.read_until("\r\n\r\n"));
        self.record(from.read_until("\r\n0\r\n\r\n"));
        from.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    up.wait_for_received(1); // so that the body comes after the head and is forwarded as an upload
    const sends_to upstream(up.port());
    client.send(tiny_chunks());
    CHECK(status_of(client.read_response()) == 200);
    CHECK(body_of(up.received()) == tiny_chunks());
    CHECK(upstream.seen() > 0);
    CHECK(upstream.seen() < few);
}

TEST_CASE("gather: an answer of tiny chunks is not sent chunk by chunk")
{
    raw_upstream up([](raw_upstream& self, raw_connection& from) {
        self.read_request(from);
        from.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        from.send(tiny_chunks());
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    const sends_to us(own_port(client));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(body_of(client.read_response()) == tiny_chunks());
    CHECK(us.seen() > 0);
    CHECK(us.seen() < few);
}

TEST_CASE("gather: a bad chunk among good ones of the same read still cuts the request")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    CHECK(eventually([&] { return up.connections() == 1; }));
    client.send("1\r\nx\r\n1\r\nx\r\nnonsense\r\n0\r\n\r\n");
    CHECK(status_of(client.read_response()) == 400);
    up.wait_until_closed();
    CHECK(up.requests().empty());
}
