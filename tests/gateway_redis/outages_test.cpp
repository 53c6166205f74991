// Redis gone, silent, empty or full: the gateway goes on answering, and the limits hold again afterwards.
#include "tests/gateway_redis/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::tests;

namespace {

const std::string ten = "      - { name: hour, key: user, algorithm: fixed_window, align: first, limit: 10/hour }\n";

} // namespace

TEST_CASE("redis: gone at the start and gone later is not the users' outage where rules are open")
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
    server.start(); // with nothing in it: NOSCRIPT, and every counter begins anew
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 20, "one").passed == 10);
    CHECK(ask_admin(gateway, "/metrics").find("headgate_redis_failures_total{store=\"shared\"} 0") ==
          std::string::npos);
}

TEST_CASE("redis: where rules are closed an outage is a 503 that says when to come back, and not ready")
{
    redis_server server;
    running_gateway gateway(configuration(server, {.rules = ten, .store_options = "timeout: 5s, on_outage: closed"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 1, "one").passed == 1);
    server.stop();
    CHECK(eventually([&] { return status_of(ask_admin(gateway, "/readyz")) == 503; }));
    const auto said = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
    CHECK(status_of(said) == 503);
    CHECK(field_of(said, "Retry-After") == "1");
    CHECK(said.find("store_unavailable") != std::string::npos);
    server.start();
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 12, "one").passed == 10);
}

TEST_CASE("redis: silent, it costs a request its timeout, a few of them, then nothing; every verdict is its own key's")
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

TEST_CASE("redis: a wrong password is said in words, and is not the users' outage")
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
