// Redis gone, silent, empty or full: the gateway keeps answering, and the limits hold again afterwards.
#include "tests/gateway_redis/support.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace headgate::tests;

namespace {

const std::string ten = "      - { name: hour, key: user, algorithm: fixed_window, align: first, limit: 10/hour }\n";

} // namespace

TEST_CASE("redis: gone at the start and gone later, requests pass where rules are open")
{
    redis_server server;
    server.stop();
    running_gateway gateway(configuration(server, {.rules = ten}));
    CHECK(eventually(
        [&] { return ask_admin(gateway, "/readyz").find("store shared: cannot connect") != std::string::npos; }));
    CHECK(status_of(ask_admin(gateway, "/readyz")) == 200);
    CHECK(ask_for(gateway, 20, "one").passed == 20);
    server.start();
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 20, "one").passed == 10);
    server.stop();
    CHECK(eventually([&] { return ask_for(gateway, 1, "one").passed == 1; }));
    server.start(); // empty: NOSCRIPT, and every counter starts at zero
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 20, "one").passed == 10);
    CHECK(ask_admin(gateway, "/metrics").find("headgate_redis_failures_total{store=\"shared\"} 0") ==
          std::string::npos);
}

TEST_CASE("redis: where rules are closed an outage is a 503 with Retry-After, and not ready")
{
    redis_server server;
    running_gateway gateway(configuration(server, {.rules = ten, .store_options = "timeout: 5s, on_outage: closed"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 1, "one").passed == 1);
    server.stop();
    CHECK(eventually([&] { return status_of(ask_admin(gateway, "/readyz")) == 503; }));
    const auto result = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
    CHECK(status_of(result) == 503);
    CHECK(field_of(result, "Retry-After") == "1");
    CHECK(result.find("store_unavailable") != std::string::npos);
    server.start();
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 12, "one").passed == 10);
}

TEST_CASE("redis: silent, it delays a few requests by the timeout, then none; every verdict belongs to its key")
{
    redis_server server;
    running_gateway gateway(configuration(
        server, {.rules = ten,
                 .store_options = "timeout: 50ms, on_outage: open, breaker: { failures: 3, probe_interval: 50ms }",
                 .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 12, "before").passed == 10);
    server.pause();
    const auto during = ask_for(gateway, 200, "during");
    CHECK(during.passed == 200); // open
    MESSAGE("silent Redis: the longest answer took " << during.longest.count() << " us, the timeout is 50000");
    CHECK(during.longest < std::chrono::seconds{10});
    server.resume();
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 12, "before").passed == 0);
    for (int i = 0; i < 20; ++i) {
        const auto key = "after " + std::to_string(i);
        CHECK(ask_for(gateway, 12, "after" + std::to_string(i)).passed == 10);
    }
}

TEST_CASE("redis: a wrong password is reported as text, and requests pass")
{
    redis_server server({"--requirepass", "secret"});
    running_gateway gateway(configuration(server, {.rules = ten, .login = ":wrong@"}));
    CHECK(eventually([&] {
        return ask_admin(gateway, "/readyz").find("the user or the password is wrong: WRONGPASS") != std::string::npos;
    }));
    CHECK(ask_for(gateway, 3, "one").passed == 3);
    gateway.reload(configuration(server, {.rules = ten, .login = ":secret@"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(eventually([&] { return ask_for(gateway, 12, "one").refused > 0; }));
}

TEST_CASE("redis: a server that refuses every decision is a reported outage, although its connection is open")
{
    redis_server replica({"--replicaof", "127.0.0.1", "1"}), healthy;
    running_gateway open(configuration(replica, {.rules = ten}));
    REQUIRE(wait_until_connected(open));
    CHECK(ask_for(open, 3, "one").passed == 3);
    CHECK(eventually(
        [&] { return ask_admin(open, "/readyz").find("store shared: Redis says READONLY") != std::string::npos; }));
    CHECK(status_of(ask_admin(open, "/readyz")) == 200);
    open.reload(configuration(healthy, {.rules = ten}));
    REQUIRE(wait_until_connected(open));
    CHECK(eventually([&] { return ask_for(open, 12, "one").refused > 0; }));

    redis_server full({"--maxmemory", "1"});
    running_gateway closed(configuration(full, {.rules = ten, .store_options = "timeout: 5s, on_outage: closed"}));
    REQUIRE(wait_until_connected(closed));
    CHECK(ask_for(closed, 3, "one").other == 3);
    CHECK(eventually([&] { return status_of(ask_admin(closed, "/readyz")) == 503; }));
    CHECK(ask_admin(closed, "/readyz").find("store shared: Redis says OOM") != std::string::npos);
}

TEST_CASE("redis: a user that may not GET, and a renamed GET, are reported outages, not the end of all limits")
{
    const std::string one_window = ten; // decided by take_each.lua and take.lua
    const std::string slots = "      - { name: open, key: user, algorithm: concurrency, limit: 10 }\n"; // by take.lua
    const redis_server may_not({"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-get"});
    const redis_server renamed({"--rename-command", "GET", "fetch"});
    for (const auto* const server : {&may_not, &renamed}) {
        for (const auto& rules : {one_window, slots}) {
            CAPTURE(rules);
            running_gateway closed(
                configuration(*server, {.rules = rules, .store_options = "timeout: 5s, on_outage: closed"}));
            REQUIRE(wait_until_connected(closed));
            const auto result = ask_for(closed, 12, "one");
            CHECK(result.passed == 0);
            CHECK(result.other == 12);
            const auto ready = ask_admin(closed, "/readyz");
            CHECK(status_of(ready) == 503);
            const auto* const says = server == &may_not ? "store shared: Redis says ERR The user"
                                                        : "store shared: Redis says ERR Unknown Redis command";
            CHECK_MESSAGE(ready.find(says) != std::string::npos, ready);
        }
    }
}

TEST_CASE("redis: a reload to a silent server is reported, whatever the state of the previous one")
{
    redis_server server;
    raw_upstream silent([](raw_upstream&, raw_connection& client) { client.read_all(); });
    running_gateway gateway(configuration(server, {.rules = ten}));
    REQUIRE(wait_until_connected(gateway));
    gateway.reload(configuration("redis://127.0.0.1:" + std::to_string(silent.port()),
                                 {.rules = ten, .store_options = "on_outage: closed, connect_timeout: 60s"}));
    CHECK(eventually([&] {
        const auto result = ask_admin(gateway, "/readyz");
        return status_of(result) == 503 && result.find("store shared: not connected yet") != std::string::npos;
    }));
}

TEST_CASE("redis: without any sentinel the primary that answers is still used, and that is a warning")
{
    headgate::testing::sentinel_group group(1);
    std::string url = "redis+sentinel://";
    for (const auto& each : group.sentinels)
        url += (each == group.sentinels.front() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port());
    url += "/main";
    running_gateway gateway(configuration(url, {.rules = ten, .store_options = "timeout: 5s, on_outage: closed"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 2, "one").passed == 2);
    for (auto& each : group.sentinels)
        each->stop();
    std::string ready;
    CHECK_MESSAGE(eventually([&] {
                      ready = ask_admin(gateway, "/readyz");
                      return ready.find("store shared: no sentinel names the primary") != std::string::npos;
                  }),
                  ready);
    CHECK(status_of(ready) == 200);
    CHECK(ready.find("\"warnings\":[]") == std::string::npos);
    const auto after = ask_for(gateway, 10, "one");
    CHECK(after.passed == 8);
    CHECK(after.refused == 2);
    group.primary.stop(); // now requests are refused, and balancers must know
    CHECK(eventually([&] { return status_of(ask_admin(gateway, "/readyz")) == 503; }));
}

TEST_CASE("redis: a request that has waited for Redis in vain does not wait again in the next chain")
{
    redis_server server;
    const std::string next = "  next:\n    store: shared\n    rules:\n" + ten;
    running_gateway gateway(
        configuration(server, {.rules = ten + next,
                               .store_options = "timeout: 300ms, on_outage: open, breaker: { failures: 100 }",
                               .chains = "[ api, next ]",
                               .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    const std::string decisions = "headgate_redis_decisions_total{store=\"shared\"}";
    CHECK(ask_for(gateway, 1, "one").passed == 1);
    CHECK(metric_at_last(gateway, decisions, 2) == 2);
    server.pause();
    const auto during = ask_for(gateway, 1, "one");
    server.resume();
    CHECK(during.passed == 1);
    CHECK(metric(gateway, decisions) == 3); // of the first chain, which had no reply
    CHECK(metric(gateway, "headgate_redis_failures_total{store=\"shared\"}") == 2);
}

TEST_CASE("redis: two chains together wait no longer than one timeout")
{
    redis_server server;
    std::atomic<bool> is_slow{false}; // 200 ms for each answer, once the scripts are known
    raw_upstream relay([&](raw_upstream&, raw_connection& client) {
        auto redis = raw_connection::to(static_cast<std::uint16_t>(server.port()));
        for (auto sent = client.read_some(); !sent.empty(); sent = client.read_some()) {
            std::this_thread::sleep_for(std::chrono::milliseconds{is_slow ? 200 : 0});
            redis.send(sent);
            client.send(redis.read_some());
        }
    });
    const std::string next = "  next:\n    store: shared\n    rules:\n" + ten;
    running_gateway gateway(
        configuration("redis://127.0.0.1:" + std::to_string(relay.port()),
                      {.rules = ten + next,
                       .store_options = "timeout: 300ms, on_outage: open, breaker: { failures: 100 }",
                       .chains = "[ api, next ]",
                       .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 1, "one").passed == 1);
    is_slow = true;
    const auto result = ask_for(gateway, 1, "one");
    CHECK(result.passed == 1);
    MESSAGE("two chains of 200 ms each: answered after " << result.longest.count() << " us, the timeout is 300000");
    CHECK(metric_at_last(gateway, "headgate_redis_decisions_total{store=\"shared\"}", 4) == 4);
    CHECK(metric(gateway, "headgate_redis_failures_total{store=\"shared\"}") == 1); // the second was not in time
}

TEST_CASE("redis: a cut or malformed reply is an outage for its request only")
{
    for (const std::string spoilt : {"$40\r\nhalf of", "\x01\xff\r\n", "*99999999999\r\n", "$-7\r\n"}) {
        CAPTURE(spoilt);
        raw_upstream strange([&](raw_upstream&, raw_connection& client) {
            client.read_until("SETNAME");
            client.send("+OK\r\n");
            client.read_until("EVALSHA");
            client.send(spoilt);
        });
        redis_server server;
        running_gateway gateway(
            configuration("redis://127.0.0.1:" + std::to_string(strange.port()), {.rules = ten, .workers = 1}));
        for (int i = 0; i < 3; ++i) {
            REQUIRE(wait_until_connected(gateway));
            const auto result = ask_for(gateway, 1, "one");
            CHECK(result.passed == 1);
            CHECK(result.longest < std::chrono::seconds{4}); // the store's timeout is 5 s: no request waited for it
        }
        gateway.reload(configuration(server, {.rules = ten, .workers = 1}));
        CHECK(eventually([&] { return ask_for(gateway, 12, "one").refused > 0; }));
    }
}
