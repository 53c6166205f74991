// Requests that wait for a place in an upstream's pool: how long, and in which order.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <latch>

using namespace headgate::tests;

namespace {

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string admin = "admin: { address: 127.0.0.1:0 }\n";

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"; }

// An upstream that does not answer before it is opened.
class gated_upstream
{
public:
    raw_upstream& server() { return up_; }
    void open()
    {
        if (!std::exchange(is_open_, true))
            gate_.count_down();
    }
    ~gated_upstream() { open(); }

private:
    void serve(raw_upstream& self, raw_connection& from)
    {
        while (!self.read_request(from).empty()) {
            gate_.wait();
            from.send(ok);
        }
    }
    std::latch gate_{1};
    bool is_open_ = false;
    raw_upstream up_{[this](raw_upstream& self, raw_connection& from) { serve(self, from); }};
};

bool eventually_waiting(running_gateway& gateway, int requests)
{
    return eventually([&] {
        auto operators = raw_connection::to(gateway.app().admin_port());
        operators.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        const auto line = "headgate_upstream_waiting{upstream=\"up\"} " + std::to_string(requests) + "\n";
        return operators.read_all().find(line) != std::string::npos;
    });
}

} // namespace

TEST_CASE("queue: a request that gets no connection within the connect timeout is 503")
{
    gated_upstream up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), "", "",
                                                         "    max_connections: 1\n    timeouts: { connect: 100ms }\n"));
    auto first = gateway.connect();
    first.send(get("/first"));
    up.server().wait_for_received(1);
    auto second = gateway.connect();
    second.send(get("/second"));
    const auto refused = second.read_response();
    CHECK(status_of(refused) == 503);
    CHECK(refused.find("\"code\":\"upstream_busy\"") != std::string::npos);
    CHECK(field_of(refused, "Connection") == "");

    up.open();
    CHECK(status_of(first.read_response()) == 200);
    second.send(get("/again"));
    CHECK(status_of(second.read_response()) == 200);
    CHECK(up.server().received().find("/second") == std::string::npos);
    CHECK(up.server().connections() == 1);
}

TEST_CASE("queue: a client that leaves frees its place, other clients keep theirs")
{
    gated_upstream up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), admin, "",
                                                         "    max_connections: 1\n    timeouts: { connect: 5m }\n"));
    auto first = gateway.connect();
    first.send(get("/first"));
    up.server().wait_for_received(1);
    auto second = gateway.connect();
    second.send(get("/second"));
    CHECK(eventually_waiting(gateway, 1));
    auto third = gateway.connect();
    third.send(get("/third"));
    CHECK(eventually_waiting(gateway, 2));
    second.reset();
    CHECK(eventually_waiting(gateway, 1));

    up.open();
    CHECK(status_of(first.read_response()) == 200);
    CHECK(status_of(third.read_response()) == 200);
    CHECK(up.server().received().find("/second") == std::string::npos);
    CHECK(up.server().connections() == 1);
}

TEST_CASE("queue: max_connections holds for each server")
{
    gated_upstream one, two;
    running_gateway gateway("workers: 1\n" + admin + "listeners:\n  - address: 127.0.0.1:0\nupstreams:\n  up:\n" +
                            "    servers: [ 127.0.0.1:" + std::to_string(one.server().port()) +
                            ", 127.0.0.1:" + std::to_string(two.server().port()) + " ]\n" +
                            "    max_connections: 1\n    timeouts: { connect: 5m }\n"
                            "routes:\n  - { name: all, upstream: up }\n");
    std::vector<raw_connection> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(gateway.connect());
        clients.back().send(get("/"));
    }
    one.server().wait_for_received(1);
    two.server().wait_for_received(1);
    CHECK(eventually_waiting(gateway, 1));
    one.open();
    two.open();
    for (auto& client : clients)
        CHECK(status_of(client.read_response()) == 200);
    CHECK(one.server().connections() == 1);
    CHECK(two.server().connections() == 1);
}
