// The duties of a proxy to both sides, through a real listener: hardening C1-C13.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>
#include <sys/socket.h>

using namespace headgate::tests;

namespace {

// The segments that a socket has received, acknowledgements included. glibc's tcp_info ends before this member.
std::uint32_t segments_received(int socket)
{
    struct
    {
        tcp_info known;
        std::uint64_t rates_and_bytes[4];
        std::uint32_t sent, received;
    } all{};
    static_assert(sizeof all.known == 104, "the kernel's tcp_info as far as Linux 2.6 had it");
    socklen_t size = sizeof all;
    REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &all, &size) == 0);
    REQUIRE(size == sizeof all);
    return all.received;
}

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string get(const std::string& lines) { return "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"; }

std::string forwarded(const std::string& request)
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    CHECK(status_of(gateway.ask(request)) == 200);
    return up.last();
}

// Returns what a client receives when the upstream answers each request with `answer` and keeps the connection.
std::string relayed(const std::string& answer, const std::string& request = get(""))
{
    recorder up(answer);
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    return gateway.ask(request);
}

const std::string handshake = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const std::string accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

} // namespace

TEST_CASE("proxy: C1, hop-by-hop fields are dropped, in both directions")
{
    const auto seen =
        forwarded(get("Connection: close, X-Mine, x-yours\r\nX-Mine: 1\r\nX-Yours: 2\r\nX-Other: 3\r\n"
                      "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n"
                      "TE: trailers, gzip\r\nTrailer: X-Sum\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"));
    for (const std::string name : {"Connection", "X-Mine", "X-Yours", "Keep-Alive", "Proxy-Connection",
                                   "Proxy-Authorization", "TE", "Trailer", "Upgrade", "HTTP2-Settings"}) {
        CAPTURE(name);
        CHECK(field_of(seen, name) == "");
    }
    CHECK(field_of(seen, "X-Other") == "3");

    const auto answer = relayed("HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine, Set-Cookie\r\nX-Mine: 1\r\n"
                                "Keep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nTrailer: X\r\nUpgrade: h2c\r\n"
                                "Set-Cookie: a=b\r\nX-Other: 3\r\nContent-Length: 2\r\n\r\nok");
    for (const std::string name : {"Connection", "X-Mine", "Keep-Alive", "Proxy-Authenticate", "Trailer", "Upgrade"}) {
        CAPTURE(name);
        CHECK(field_of(answer, name) == "");
    }
    CHECK(field_of(answer, "X-Other") == "3");
}

TEST_CASE("proxy: C1, naming a field that decides something in Connection is refused")
{
    std::vector<malformed> rows;
    for (const std::string name : {"Host", "Content-Length", "Authorization", "Cookie", "X-Forwarded-For",
                                   "x-forwarded-host", "X-Forwarded-Proto", "Transfer-Encoding"})
        rows.push_back({"C1", get("Connection: close, " + name + "\r\n"), 400});
    check_refused(rows, reaches::nothing);
}

TEST_CASE("proxy: C2, Via is added, and a request that has been here is a loop")
{
    CHECK(field_of(forwarded(get("Via: 1.0 other\r\n")), "Via") == "1.0 other");
    CHECK(forwarded(get("Via: 1.0 other\r\n")).find("Via: 1.1 headgate-") != std::string::npos);
    CHECK(forwarded("GET / HTTP/1.0\r\n\r\n").find("Via: 1.0 headgate-") != std::string::npos);
    recorder up;
    const auto yaml = running_gateway::in_front_of(up.server());
    running_gateway gateway(yaml);
    const auto answer = gateway.ask(get(""));
    const auto own = field_of(up.last(), "Via").substr(4);
    CHECK(field_of(answer, "Via") == "1.1 " + own);
    CHECK(own.size() == std::string("headgate-").size() + 16);
    gateway.reload(yaml); // the same process: the same name
    CHECK(status_of(gateway.ask(get("Via: 1.0 other, 1.1 " + own + " (x)\r\n"))) == 508);
    CHECK(up.requests().size() == 1);
    CHECK(status_of(gateway.ask(get("Via: 1.1 headgate, 1.1 headgate-0123456789abcdef\r\n"))) == 200);
}

TEST_CASE("proxy: C2, a gateway in front of another one with the same name is no loop")
{
    recorder up;
    running_gateway inner(running_gateway::in_front_of(up.server()));
    auto yaml = running_gateway::in_front_of(up.server());
    const auto port = std::to_string(up.server().port());
    yaml.replace(yaml.rfind(port), port.size(), std::to_string(inner.port()));
    running_gateway outer(yaml);
    CHECK(status_of(outer.ask(get(""))) == 200);
    CHECK(count(up.last(), "Via: 1.1 headgate-") == 2);
}

TEST_CASE("proxy: C3, forwarding headers name the peer and are not taken from a stranger")
{
    const auto seen =
        forwarded(get("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
                      "X-Real-IP: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n"));
    CHECK(field_of(seen, "X-Forwarded-For") == "127.0.0.1");
    CHECK(field_of(seen, "X-Forwarded-Proto") == "http");
    CHECK(field_of(seen, "X-Forwarded-Host") == "a");
    CHECK(field_of(seen, "Forwarded") == "");
    CHECK(count(seen, "X-Forwarded-For") == 1);
    CHECK(field_of(seen, "X-Real-IP") == "192.0.2.1"); // no standard says what it means: the route may remove it
}

TEST_CASE("proxy: C3, whatever the mode, a stranger's forwarding headers are dropped and a trusted proxy's are kept")
{
    const auto request = get("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nForwarded: for=192.0.2.1\r\n"
                             "X-Forwarded-Proto: https\r\nX-Forwarded-Host: other\r\n");
    const auto seen_with = [&](const std::string& mode, const std::string& trusted) {
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(
            up.server(), "forwarding: { x_forwarded: " + mode + " }\ntrusted_proxies: [ " + trusted + " ]\n"));
        CHECK(status_of(gateway.ask(request)) == 200);
        return up.last();
    };
    for (const std::string mode : {"append", "replace", "off"}) {
        CAPTURE(mode);
        const auto seen = seen_with(mode, "");
        for (const std::string claim : {"192.0.2", "https", "other"})
            CHECK(seen.find(claim) == std::string::npos);
        CHECK(field_of(seen, "X-Forwarded-For") == (mode == "off" ? "" : "127.0.0.1"));
        CHECK(field_of(seen, "X-Forwarded-Proto") == (mode == "off" ? "" : "http"));
    }
    CHECK(field_of(seen_with("append", "127.0.0.1"), "X-Forwarded-For") == "192.0.2.1, 192.0.2.2, 127.0.0.1");
    CHECK(field_of(seen_with("replace", "127.0.0.1"), "X-Forwarded-For") == "127.0.0.1");
    for (const std::string mode : {"append", "replace", "off"}) {
        const auto seen = seen_with(mode, "127.0.0.1");
        CHECK(field_of(seen, "X-Forwarded-Proto") == "https");
        CHECK(field_of(seen, "X-Forwarded-Host") == "other");
        CHECK(field_of(seen, "Forwarded") == "for=192.0.2.1");
    }
}

TEST_CASE("proxy: C3, a dropped forwarding header is logged once, with what to configure")
{
    std::ostringstream lines;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines)));
    {
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        gateway.ask(get(""));
        for (int i = 0; i < 3; ++i)
            gateway.ask(get("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n"));
    }
    spdlog::set_default_logger(before);
    const auto logged = lines.str();
    CAPTURE(logged);
    CHECK(count(logged, "X-Forwarded-For") == 1);
    CHECK(count(logged, "trusted_proxies") == 1);
    CHECK(logged.find("127.0.0.1") != std::string::npos);
}

TEST_CASE("proxy: C4, Expect: 100-continue is answered by the gateway, the body arrives once")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), "", "    limits: { body: 1KiB }\n"));
    SUBCASE("the client waits")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        CHECK(status_of(client.read_response()) == 100);
        client.send("hello");
        CHECK(status_of(client.read_response()) == 200);
        CHECK(body_of(up.last()) == "hello");
        CHECK(field_of(up.last(), "Expect") == "");
    }
    SUBCASE("the client does not wait: no 100")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\nhello");
        CHECK(status_of(client.read_response()) == 200);
        CHECK(body_of(up.last()) == "hello");
    }
    SUBCASE("there is no body to wait for: no 100")
    {
        auto client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
        CHECK(status_of(client.read_response()) == 200);
    }
    SUBCASE("HTTP/1.0 never gets a 1xx")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        client.send("hello");
        CHECK(status_of(client.read_all()) == 200);
        CHECK(body_of(up.last()) == "hello");
    }
    SUBCASE("413 from the head's Content-Length is sent instead of 100")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n");
        CHECK(status_of(client.read_all()) == 413);
        CHECK(client.was_closed());
    }
    SUBCASE("another expectation is 417")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 5\r\n\r\nhello");
        CHECK(status_of(client.read_all()) == 417);
        CHECK(up.connections() == 0);
    }
}

TEST_CASE("proxy: C4, a 429 instead of 100 closes: whether the body follows is not known")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "chains:\n  c:\n    store: local\n    rules:\n"
                     "      - { name: one, key: [route], algorithm: fixed_window, limit: 1/hour }\n"
                     "routes:\n  - { name: all, upstream: up, chains: [ c ] }\n"));
    CHECK(status_of(gateway.ask(get(""))) == 200);
    auto client = gateway.connect();
    // A desynchronised server would take its body for the next request.
    const std::string body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n");
    const auto result = client.read_response();
    CHECK(status_of(result) == 429);
    CHECK(field_of(result, "Connection") == "close");
    client.send(body);
    CHECK(client.read_all() == "");
    CHECK(client.was_closed());
}

TEST_CASE("proxy: L5, a refusal does not wait for the body it refuses")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "chains:\n  c:\n    store: local\n    rules:\n"
                     "      - { name: one, key: [route], algorithm: fixed_window, limit: 1/hour }\n"
                     "routes:\n  - { name: all, upstream: up, chains: [ c ] }\n"));
    CHECK(status_of(gateway.ask(get(""))) == 200);
    auto client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    CHECK(status_of(client.read_response()) == 429); // before the rest is sent
    client.send("other!");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(status_of(client.read_response()) == 429);
    client.send("5\r\nhello\r\n0\r\n\r\n");
    client.send(get("")); // the connection is still synchronised
    const auto last = client.read_response();
    CHECK(status_of(last) == 429);
    CHECK(field_of(last, "Retry-After") != "");
    CHECK(up.requests().size() == 1);
    // A body too large to be dropped: answered at once, closed.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhalf");
    const auto closing = client.read_all();
    CHECK(status_of(closing) == 429);
    CHECK(field_of(closing, "Connection") == "close");
}

TEST_CASE("proxy: C5, interim answers are relayed to HTTP/1.1 clients only")
{
    const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: 1\r\n\r\n";
    const std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
    recorder up(proceed + early + early + ok);
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    client.send(get(""));
    CHECK(status_of(client.read_response()) == 100);
    const auto hints = client.read_response();
    CHECK(status_of(hints) == 103);
    CHECK(field_of(hints, "Link") == "</a>");
    CHECK(field_of(hints, "X") == "");
    CHECK(field_of(hints, "Content-Length") == "");
    CHECK(status_of(client.read_response()) == 103);
    CHECK(status_of(client.read_response()) == 200);
    auto old = gateway.connect();
    old.send("GET / HTTP/1.0\r\n\r\n");
    CHECK(status_of(old.read_all()) == 200);
}

TEST_CASE("proxy: C5, ten interim answers pass, the eleventh is 502, and so is an unrequested 101")
{
    const std::string early = "HTTP/1.1 103 Early Hints\r\n\r\n";
    std::string ten;
    for (int i = 0; i < 10; ++i)
        ten += early;
    {
        recorder up(ten + ok);
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        CHECK(status_of(client.read_all()) == 200);
    }
    CHECK(status_of(relayed(ten + early + ok, "GET / HTTP/1.0\r\n\r\n")) == 502);
    CHECK(status_of(relayed(accepted)) == 502);
    CHECK(status_of(relayed("HTTP/1.1 101 Switching Protocols\r\n\r\n")) == 502);
}

TEST_CASE("proxy: C6, answers without a body have none whatever the upstream sends")
{
    SUBCASE("HEAD keeps the length and the connection")
    {
        recorder up("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        for (int i = 0; i < 2; ++i) {
            client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
            const auto result = client.read_response(false);
            CHECK(status_of(result) == 200);
            CHECK(field_of(result, "Content-Length") == "1000");
        }
        CHECK(up.connections() == 1);
    }
    SUBCASE("HEAD, 204 and 304 with a body: it is dropped, and the connection is not used again")
    {
        for (const std::string head :
             {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "HTTP/1.1 204 No\r\nContent-Length: 8\r\n\r\n",
              "HTTP/1.1 304 No\r\nContent-Length: 8\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n"}) {
            CAPTURE(head);
            recorder up(head + "HTTP/1.1 200 poison\r\n\r\n");
            running_gateway gateway(running_gateway::in_front_of(up.server()));
            auto client = gateway.connect();
            for (int i = 0; i < 3; ++i) {
                client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
                const auto result = client.read_response(false);
                CHECK(result.starts_with(head.substr(0, 12)));
                CHECK(result.find("poison") == std::string::npos);
                if (status_of(result) == 204)
                    CHECK(field_of(result, "Content-Length") == "");
                else
                    CHECK(field_of(result, "Content-Length") == "8");
            }
            CHECK(up.connections() == 3);
        }
    }
    SUBCASE("204 never carries framing")
    {
        const auto result = relayed("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n");
        CHECK(status_of(result) == 204);
        CHECK(field_of(result, "Transfer-Encoding") == "");
        CHECK(field_of(result, "Content-Length") == "");
    }
}

TEST_CASE("proxy: C7, a WebSocket handshake that is accepted becomes a tunnel")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send(accepted + "hello");
        for (auto some = client.read_some(); !some.empty(); some = client.read_some())
            client.send("<" + some + ">");
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    client.send(handshake + "early");
    const auto result = client.read_response();
    CHECK(status_of(result) == 101);
    CHECK(field_of(result, "Upgrade") == "websocket");
    CHECK(field_of(result, "Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    CHECK(client.read_until("<early>") == "hello<early>");
    client.send("more");
    CHECK(client.read_until("<more>") == "<more>");
    CHECK(field_of(up.received(), "Upgrade") == "websocket");
    client.close();
    up.wait_for_ended(1); // the end of the stream is forwarded
}

TEST_CASE("proxy: C7, a tunnel whose upstream ends is closed, also while its client goes on sending")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send(accepted);
        for (std::size_t taken = 0; taken < 1'000'000;)
            taken += client.read_some().size();
        client.close();
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    for (std::size_t i = 1; i <= 10; ++i) { // the upstream's end meets the client's bytes at another step each time
        auto client = gateway.connect();
        client.send(handshake);
        CHECK(status_of(client.read_response()) == 101);
        std::atomic<bool> is_over{false};
        std::thread sender([&] {
            const std::string piece(64 * 1024, 'x');
            while (!is_over)
                client.send(piece);
        });
        client.read_all();
        is_over = true;
        sender.join();
        CHECK((client.was_closed() || client.was_reset()));
        up.wait_for_ended(i);
    }
}

TEST_CASE("proxy: C7, a handshake that is refused leaves plain HTTP on both sides")
{
    recorder up("HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 12\r\nContent-Length: 2\r\n\r\nno");
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    // If the gateway opened a tunnel, the next request would be tunnelled unchecked (websocket-smuggle).
    client.send(handshake + "GET /next HTTP/1.1\r\nHost: a\r\nConnection: Host\r\n\r\n");
    CHECK(status_of(client.read_response()) == 426);
    CHECK(status_of(client.read_all()) == 400); // checked like any request
    CHECK(up.requests().size() == 1);
}

TEST_CASE("proxy: C7, a 101 that does not fit the handshake opens no tunnel")
{
    const std::string opening = "HTTP/1.1 101 Switching Protocols\r\n";
    for (const std::string fields :
         {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n",
          "Connection: Upgrade\r\nUpgrade: websocket\r\n",
          "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
          "Connection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", ""}) {
        CAPTURE(fields);
        recorder up(opening + fields + "\r\n");
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        client.send(handshake + "GET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        CHECK(status_of(client.read_response()) == 502);
        client.read_all();
        for (const auto& request : up.requests())
            CHECK(request.find("Via: ") != std::string::npos); // no bytes were tunnelled
    }
}

TEST_CASE("proxy: C7, requests that are no WebSocket handshake are forwarded without Upgrade")
{
    const std::string key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (const auto& request :
         {get("Upgrade: websocket\r\n" + key),
          get("Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n" + key),
          "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n" + key +
              "\r\n",
          "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + key + "\r\n"}) {
        CAPTURE(request);
        const auto seen = forwarded(request);
        CHECK(field_of(seen, "Upgrade") == "");
        CHECK(field_of(seen, "Connection") == "");
        CHECK(field_of(seen, "Sec-WebSocket-Key") == "");
        CHECK(field_of(seen, "HTTP2-Settings") == "");
    }
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    const std::string upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    CHECK(status_of(gateway.ask(get(upgrade + "Sec-WebSocket-Version: 8\r\n"))) == 426);
    CHECK(status_of(gateway.ask(get(upgrade + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n"))) == 400);
    CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" + upgrade + key + "\r\nx")) ==
          400);
    CHECK(up.connections() == 0);
}

TEST_CASE("proxy: C8, any method may have a body")
{
    for (const std::string method : {"GET", "HEAD", "DELETE", "OPTIONS", "PATCH", "PROPFIND"}) {
        CAPTURE(method);
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        client.send(method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        CHECK(status_of(client.read_response(method != "HEAD")) == 200);
        CHECK(up.last().starts_with(method + " / "));
        CHECK(body_of(up.last()) == "hello");
        client.send(method + " / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        CHECK(status_of(client.read_response(method != "HEAD")) == 200);
        CHECK(plain_body(up.last()) == "hello");
    }
}

TEST_CASE("proxy: the last answer of a connection and its end leave in one segment")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "routes:\n  - { name: some, match: { path: /some }, upstream: up }\n"));
    const auto fewest_segments = [&](const std::string& path, bool ends) {
        std::uint32_t fewest = ~0U;
        for (int i = 0; i < 20; ++i) { // sometimes a separate acknowledgement is one segment more
            auto client = gateway.connect();
            client.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n" + (ends ? "Connection: close\r\n\r\n" : "\r\n"));
            const auto answer = ends ? client.read_all() : client.read_response();
            CHECK(field_of(answer, "Connection") == (ends ? "close" : ""));
            if (ends) {
                CHECK(client.was_closed());
                CHECK_FALSE(client.was_reset());
            }
            fewest = std::min(fewest, segments_received(client.descriptor()));
        }
        return fewest;
    };
    for (const auto* path : {"/some", "/other"}) { // a forwarded answer, and the gateway's own 404
        INFO(path);
        CHECK(fewest_segments(path, true) == fewest_segments(path, false));
    }
}

TEST_CASE("proxy: C9, pipelined requests are answered in order, however many come at once")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        for (;;) {
            const auto request = self.read_request(client);
            if (request.empty())
                return;
            const auto path = request.substr(4, request.find(' ', 4) - 4);
            client.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(path.size()) + "\r\n\r\n" + path);
        }
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    for (const int many : {50, 1000}) {
        std::string requests;
        for (int i = 0; i < many; ++i)
            requests += i % 3 == 2
                            ? "PUT /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                            : "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
        auto client = gateway.connect();
        client.send(requests);
        for (int i = 0; i < many; ++i)
            REQUIRE(body_of(client.read_response()) == "/" + std::to_string(i));
    }
}

TEST_CASE("proxy: C9, a long run of pipelined requests that need no upstream is answered")
{
    running_gateway gateway("workers: 1\nlisteners:\n  - address: 127.0.0.1:0\nupstreams:\n  up: { echo: true }\n"
                            "routes:\n  - { name: all, upstream: up }\n");
    std::string requests;
    const int many = 5000;
    for (int i = 0; i < many; ++i)
        requests += "GET / HTTP/1.1\r\nHost:a\r\n\r\n";
    auto client = gateway.connect();
    std::thread sender([&] { client.send(requests); });
    for (int i = 0; i < many; ++i)
        REQUIRE(status_of(client.read_response()) == 200);
    sender.join();
}

TEST_CASE("proxy: C10, an interim answer is an answer: nothing is sent twice after it")
{
    std::atomic<int> served{0};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        for (;;) {
            if (self.read_request(client).empty())
                return;
            if (++served == 2) {
                client.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
                return;
            }
            client.send(ok);
        }
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    client.send(get(""));
    CHECK(status_of(client.read_response()) == 200);
    client.send("PUT /once HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    CHECK(status_of(client.read_response()) == 103);
    CHECK(status_of(client.read_response()) == 502);
    CHECK(count(up.received(), "PUT /once") == 1);
}

TEST_CASE("proxy: C11, HTTP/1.0 clients keep their connection only if they request it and the answer has a length")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    for (int i = 0; i < 2; ++i) {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        const auto result = client.read_response();
        CHECK(status_of(result) == 200);
        CHECK(field_of(result, "Connection") == "keep-alive");
    }
    client.send("GET / HTTP/1.0\r\n\r\n");
    CHECK(field_of(client.read_all(), "Connection") == "close");
    CHECK(client.was_closed());

    recorder in_chunks("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    running_gateway second(running_gateway::in_front_of(in_chunks.server()));
    auto old = second.connect();
    old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const auto result = old.read_all();
    CHECK(body_of(result) == "hello");
    CHECK(field_of(result, "Connection") == "close");
    CHECK(old.was_closed());
}

TEST_CASE("proxy: C12, every answer has a Date, and only one")
{
    CHECK(field_of(relayed(ok), "Date").ends_with("GMT"));
    const auto own = relayed("HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n");
    CHECK(field_of(own, "Date") == "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK(count(own, "Date: ") == 1);
    const auto error = relayed("nonsense");
    CHECK(status_of(error) == 502);
    CHECK(field_of(error, "Date").ends_with("GMT"));
    CHECK(body_of(error).size() == std::stoul(field_of(error, "Content-Length")));
}

TEST_CASE("proxy: C13, answers are as clean as requests")
{
    for (const std::string line :
         {"X: a\r\n b", "X : a", "X: a\rb", "X: \x01", ": a", "no colon", "X: a\nY: b", " X: a"}) {
        CAPTURE(line);
        const auto result = relayed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + line + "\r\n\r\n");
        CHECK(status_of(result) == 502);
    }
    CHECK(status_of(relayed(std::string("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\0b\r\n\r\n", 46))) == 502);
    CHECK(field_of(relayed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: caf\xe9\r\n\r\n"), "X") == "caf\xe9");
    CHECK(relayed("HTTP/1.1 299 Fine By Me\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 299 Fine By Me\r\n"));
}
