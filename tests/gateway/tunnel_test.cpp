// WebSockets that are open for long: how long both sides may be silent, what is logged, and peers that vanish.
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace headgate::tests;
using namespace std::chrono_literals;

namespace {

const std::string handshake = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const std::string accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

// Accepts the handshake and records what comes; a `!` is answered with "bye".
raw_upstream::handler listening()
{
    return [](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send(accepted);
        for (auto some = client.read_some(); !some.empty(); some = client.read_some()) {
            self.record(some);
            if (some.ends_with('!'))
                client.send("bye");
        }
    };
}

std::string with_tunnel(const std::string& time) { return "    timeouts: { idle: 100ms, tunnel: " + time + " }\n"; }

std::string log_to(const log_pipe& pipe) { return "log: { access: { path: " + pipe.path() + " } }\n"; }

raw_connection open_tunnel(running_gateway& gateway)
{
    auto client = gateway.connect();
    client.send(handshake);
    CHECK(status_of(client.read_response()) == 101);
    return client;
}

std::uint16_t port_of(int socket, decltype(::getsockname) name)
{
    sockaddr_in address{};
    socklen_t size = sizeof address;
    const bool is_known = name(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    return is_known && address.sin_family == AF_INET ? ntohs(address.sin_port) : std::uint16_t{0};
}

int option_of(int socket, int level, int name)
{
    int value = 0;
    socklen_t size = sizeof value;
    ::getsockopt(socket, level, name, &value, &size);
    return value;
}

// The sockets of this process, and so of the gateway in it, that are connected from or to a port.
std::vector<int> sockets_between(std::uint16_t local, std::uint16_t remote)
{
    std::vector<int> found;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int fd = std::stoi(each.path().filename().string());
        if ((local == 0 || port_of(fd, ::getsockname) == local) && port_of(fd, ::getpeername) != 0 &&
            (remote == 0 || port_of(fd, ::getpeername) == remote))
            found.push_back(fd);
    }
    return found;
}

} // namespace

TEST_CASE("tunnel: one that both sides leave silent is closed, and the log says why")
{
    log_pipe pipe;
    raw_upstream up(listening());
    running_gateway gateway(running_gateway::in_front_of(up, log_to(pipe), "", with_tunnel("300ms")));
    auto client = open_tunnel(gateway);
    const auto began = std::chrono::steady_clock::now();
    CHECK(client.read_all() == "");
    CHECK(client.was_closed());
    CHECK(std::chrono::steady_clock::now() - began >= 200ms); // not after `idle`
    up.wait_for_ended(1);
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 101);
    CHECK(line["error"] == "tunnel_idle");
}

TEST_CASE("tunnel: one on which only the client speaks stays open")
{
    raw_upstream up(listening());
    running_gateway gateway(running_gateway::in_front_of(up, "", "", with_tunnel("500ms")));
    auto client = open_tunnel(gateway);
    const auto end = std::chrono::steady_clock::now() + 1500ms;
    for (auto seen = up.received().size(); std::chrono::steady_clock::now() < end; ++seen) {
        client.send("x");
        up.wait_for_received(seen + 1);
        std::this_thread::sleep_for(20ms); // the case itself: a client that speaks now and then
    }
    client.send("!");
    CHECK(client.read_until("bye") == "bye");
}

TEST_CASE("tunnel: `unlimited` is no time at all, and the bytes of both directions are logged")
{
    log_pipe pipe;
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send(accepted + "hello");
        for (auto some = client.read_some(); !some.empty(); some = client.read_some())
            client.send(some);
    });
    running_gateway gateway(running_gateway::in_front_of(up, log_to(pipe), "", with_tunnel("unlimited")));
    auto client = gateway.connect();
    client.send(handshake + "early");
    const auto head = client.read_response();
    CHECK(field_of(head, "X-Request-Id").size() == 32);
    CHECK(client.read_until("early") == "helloearly");
    const std::string much(100'000, 'x');
    std::thread sender([&] { client.send(much + "!"); });
    CHECK(client.read_until("!") == much + "!");
    sender.join();
    client.close();
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["bytes_in"] == handshake.size() + 5 + much.size() + 1);
    CHECK(line["bytes_out"] == head.size() + 5 + 5 + much.size() + 1);
    CHECK_FALSE(line.contains("error"));
}

TEST_CASE("tunnel: TCP keep-alive finds peers that have vanished, on both sides")
{
    raw_upstream up(listening());
    running_gateway gateway(running_gateway::in_front_of(up));
    const auto client = open_tunnel(gateway);
    const auto to_client = sockets_between(gateway.port(), port_of(client.descriptor(), ::getsockname));
    const auto to_upstream = sockets_between(0, up.port());
    REQUIRE(to_client.size() == 1);
    REQUIRE(to_upstream.size() == 1);
    for (const int socket : {to_client.front(), to_upstream.front()}) {
        CHECK(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 1);
        const auto found_after =
            option_of(socket, IPPROTO_TCP, TCP_KEEPIDLE) +
            option_of(socket, IPPROTO_TCP, TCP_KEEPINTVL) * option_of(socket, IPPROTO_TCP, TCP_KEEPCNT);
        CHECK(found_after <= 120); // seconds
    }
}
