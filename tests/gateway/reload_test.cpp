// A reload and the connections to upstreams (O1): those of an unchanged upstream are kept, the others are closed.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

using namespace headgate::tests;

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string answer(const std::string& body)
{
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// `upstreams` are lines; answers of the route to `to` have a header with `version`.
std::string configuration(const std::string& upstreams, const std::string& to, const std::string& version)
{
    return "workers: 1\nlisteners:\n  - address: 127.0.0.1:0\nupstreams:\n" + upstreams +
           "routes:\n  - name: all\n    upstream: " + to + "\n    headers: { response: { set: { X-Version: " + version +
           " } } }\n";
}

std::string upstream(const std::string& name, const raw_upstream& server, const std::string& more = "")
{
    return "  " + name + ": { servers: [ 127.0.0.1:" + std::to_string(server.port()) + " ]" + more + " }\n";
}

// Sends requests on one connection until an answer is of this version, and returns it.
std::string ask_until(raw_connection& client, const std::string& version)
{
    std::string result;
    CHECK(eventually([&] {
        client.send(get);
        result = client.read_response();
        return field_of(result, "X-Version") == version;
    }));
    return result;
}

} // namespace

TEST_CASE("reload: O1, an unchanged upstream keeps its connections when others are added, removed or reordered")
{
    raw_upstream kept(always(answer("kept"))), other(always(answer("other")));
    running_gateway gateway(configuration(upstream("m", kept), "m", "one"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "one")) == "kept");
    gateway.reload(configuration(upstream("a", other) + upstream("m", kept) + upstream("z", other), "m", "two"));
    CHECK(body_of(ask_until(client, "two")) == "kept");
    gateway.reload(configuration(upstream("m", kept) + "  b: { echo: true }\n", "m", "three"));
    CHECK(body_of(ask_until(client, "three")) == "kept");
    CHECK(kept.connections() == 1);
    CHECK(other.connections() == 0);
}

TEST_CASE("reload: an upstream that changes gets new connections, and the old ones are closed")
{
    raw_upstream before(always(answer("before"))), after(always(answer("after")));
    running_gateway gateway(configuration(upstream("m", before), "m", "one"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "one")) == "before");
    SUBCASE("other servers")
    {
        gateway.reload(configuration(upstream("m", after), "m", "two"));
        CHECK(body_of(ask_until(client, "two")) == "after");
        CHECK(before.connections() == 1);
    }
    SUBCASE("another timeout")
    {
        gateway.reload(configuration(upstream("m", before, ", timeouts: { idle: 7s }"), "m", "two"));
        CHECK(body_of(ask_until(client, "two")) == "before");
        CHECK(before.connections() == 2);
    }
    SUBCASE("removed")
    {
        gateway.reload(configuration(upstream("n", after), "n", "two"));
        CHECK(body_of(ask_until(client, "two")) == "after");
    }
    before.wait_for_ended(1);
}

TEST_CASE("reload: a request in flight ends where it began")
{
    std::mutex gate;
    gate.lock();
    raw_upstream before([&](raw_upstream& self, raw_connection& from) {
        self.read_request(from);
        std::lock_guard open(gate);
        from.send(answer("before"));
        self.read_request(from);
    });
    raw_upstream after(always(answer("after")));
    running_gateway gateway(configuration(upstream("m", before), "m", "one"));
    auto slow = gateway.connect();
    slow.send(get);
    before.wait_for_received(1);
    gateway.reload(configuration(upstream("m", after), "m", "two"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "two")) == "after");
    gate.unlock();
    const auto result = slow.read_response();
    CHECK(field_of(result, "X-Version") == "one");
    CHECK(body_of(result) == "before");
    before.wait_for_ended(1);
}

TEST_CASE("reload: log.level follows")
{
    const auto before = spdlog::get_level();
    raw_upstream server(always(answer("any")));
    const auto with_level = [&](const std::string& level) {
        return configuration(upstream("m", server), "m", "one") + "log: { level: " + level + " }\n";
    };
    running_gateway gateway(with_level("error"));
    CHECK(spdlog::get_level() == spdlog::level::err);
    gateway.reload(with_level("debug"));
    CHECK(spdlog::get_level() == spdlog::level::debug);
    gateway.reload(with_level("warning"));
    CHECK(spdlog::get_level() == spdlog::level::warn);
    spdlog::set_level(before);
}
