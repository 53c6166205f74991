#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::tests;

namespace {

const std::string hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

} // namespace

TEST_CASE("forward: a GET reaches the upstream and its answer the client, on kept connections")
{
    raw_upstream up(always(hello));
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    for (int i = 0; i < 3; ++i) {
        client.send("GET /a/../b?q=1 HTTP/1.1\r\nHost: example.com\r\nX-Own: 1\r\n\r\n");
        const auto response = client.read_response();
        CHECK(status_of(response) == 200);
        CHECK(body_of(response) == "hello");
    }
    CHECK(up.connections() == 1);
    CHECK(up.received().starts_with("GET /b?q=1 HTTP/1.1\r\n"));
    CHECK(field_of(up.received(), "Host") == "example.com");
    CHECK(field_of(up.received(), "X-Own") == "1");
    CHECK(field_of(up.received(), "X-Forwarded-For") == "127.0.0.1");
    CHECK(field_of(up.received(), "Via").starts_with("1.1 headgate-"));
}

TEST_CASE("forward: bodies pass in every framing")
{
    SUBCASE("a POST with a length")
    {
        raw_upstream up(always(hello));
        running_gateway gateway(running_gateway::in_front_of(up));
        CHECK(status_of(gateway.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")) == 200);
        CHECK(body_of(up.received()) == "body");
    }
    SUBCASE("a chunked POST is chunked again")
    {
        raw_upstream up(always(hello));
        running_gateway gateway(running_gateway::in_front_of(up));
        CHECK(status_of(gateway.ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "2;x=y\r\nbo\r\n2\r\ndy\r\n0\r\nTrailer-Field: 1\r\n\r\n")) == 200);
        CHECK(body_of(up.received()) == "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n");
    }
    SUBCASE("a body larger than any buffer, both ways")
    {
        const std::string large(3'000'000, 'x');
        raw_upstream up([&](raw_upstream& self, raw_connection& client) {
            const auto request = self.read_request(client);
            client.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body_of(request).size()) + "\r\n\r\n" +
                        body_of(request));
        });
        running_gateway gateway(running_gateway::in_front_of(up));
        auto client = gateway.connect();
        std::thread sender([&] {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" +
                        large);
        });
        const auto response = client.read_response();
        sender.join();
        CHECK(body_of(response) == large);
    }
    SUBCASE("an answer that ends with its connection is sent in chunks")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) {
            self.read_request(client);
            client.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
        });
        running_gateway gateway(running_gateway::in_front_of(up));
        const auto response = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(field_of(response, "Transfer-Encoding") == "chunked");
        CHECK(body_of(response) == "d\r\nuntil the end\r\n0\r\n\r\n");
    }
    SUBCASE("C11: an HTTP/1.0 client gets no chunks")
    {
        raw_upstream up(always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
        running_gateway gateway(running_gateway::in_front_of(up));
        auto client = gateway.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        const auto response = client.read_all();
        CHECK(field_of(response, "Transfer-Encoding") == "");
        CHECK(body_of(response) == "hello");
        CHECK(client.was_closed());
    }
}

TEST_CASE("forward: D2, an upstream that refuses, closes or hangs has a distinct status")
{
    SUBCASE("refuses: 502")
    {
        std::string yaml;
        {
            raw_upstream gone(always(hello));
            yaml = running_gateway::in_front_of(gone);
        }
        running_gateway gateway(yaml);
        const auto response = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(status_of(response) == 502);
        CHECK(response.find("upstream_refused") != std::string::npos);
    }
    SUBCASE("closes without a byte: 502")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) { self.read_request(client); });
        running_gateway gateway(running_gateway::in_front_of(up));
        CHECK(status_of(gateway.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")) == 502);
        CHECK(up.connections() == 1);
    }
    SUBCASE("never answers: 504")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) {
            self.read_request(client);
            client.read_all();
        });
        running_gateway gateway(running_gateway::in_front_of(up, "", "", "    timeouts: { first_byte: 200ms }\n"));
        const auto response = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(status_of(response) == 504);
    }
}

TEST_CASE("forward: an error behind a limit decision tells the client its quota, as any other answer does")
{
    const std::string limited = "chains:\n  c:\n    store: local\n    rules:\n"
                                "      - { name: hourly, key: [route], algorithm: fixed_window, limit: 9/hour }\n"
                                "routes:\n  - { name: all, match: { path: /x }, upstream: up, chains: [ c ] }\n";
    const std::string get = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    SUBCASE("502")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) { self.read_request(client); });
        running_gateway gateway(running_gateway::in_front_of(up, limited));
        const auto answer = gateway.ask(get);
        CHECK(status_of(answer) == 502);
        CHECK(field_of(answer, "RateLimit-Policy") == "\"hourly\";q=9;w=3600");
        CHECK(field_of(answer, "RateLimit").starts_with("\"hourly\";r=8;"));
        const auto nowhere = gateway.ask("GET /y HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(status_of(nowhere) == 404);
        CHECK(field_of(nowhere, "RateLimit") == ""); // no limit was decided
    }
    SUBCASE("504")
    {
        raw_upstream up([](raw_upstream&, raw_connection& client) { client.read_all(); });
        running_gateway gateway(running_gateway::in_front_of(up, limited, "", "    timeouts: { first_byte: 100ms }\n"));
        const auto answer = gateway.ask(get);
        CHECK(status_of(answer) == 504);
        CHECK(field_of(answer, "RateLimit").starts_with("\"hourly\";r=8;"));
    }
}

TEST_CASE("forward: C10, a GET on a stale connection is tried once more, a POST is not")
{
    std::atomic<int> served{0};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        if (self.read_request(client).empty())
            return;
        client.send(hello);
        if (++served == 1) { // the second request on this connection is read and not answered
            self.read_request(client);
            return;
        }
        self.read_request(client);
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto client = gateway.connect();
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(client.read_response()) == 200);
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(client.read_response()) == 200);
    CHECK(up.connections() == 2);
    client.send("POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    CHECK(status_of(client.read_response()) == 502);
    CHECK(up.connections() == 2);
}

TEST_CASE("forward: concurrency limits count requests in flight and release them however they end")
{
    std::mutex gate;
    gate.lock();
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        std::lock_guard open(gate);
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    running_gateway gateway(
        running_gateway::in_front_of(up, "chains:\n  busy:\n    store: local\n    rules:\n"
                                         "      - { name: one, key: [route], algorithm: concurrency, limit: 1 }\n"
                                         "routes:\n  - { name: all, upstream: up, chains: [ busy ] }\n"));
    auto first = gateway.connect();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    up.wait_for_received(1);
    const auto refused = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(refused) == 429);
    CHECK(field_of(refused, "RateLimit-Policy") == "\"one\";q=1;qu=\"concurrent-requests\"");
    gate.unlock();
    CHECK(status_of(first.read_response()) == 200);
    CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
}
