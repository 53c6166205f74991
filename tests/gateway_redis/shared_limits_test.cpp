// The features of rules in memory work in Redis too: give back, settle, count requests in flight, change.
#include "tests/gateway_redis/support.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/certificates.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate::tests;

namespace {

const std::string hour = "algorithm: fixed_window, align: first, limit: ";

} // namespace

TEST_CASE("redis: a refusal in a later chain gives back the charge of an earlier one, in memory and in Redis")
{
    redis_server server;
    running_gateway gateway(configuration(
        server, {.rules = "      - { name: hour, key: user, " + hour + "5/hour }\n", .chains = "[ guard, api ]"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 50, "one").passed == 5);
    const auto result = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
    CHECK(field_of(result, "RateLimit").find("\"guard\";r=995") != std::string::npos);
}

TEST_CASE("redis: refusals whose earlier charges are given back leave no keys")
{
    redis_server server;
    running_gateway gateway(
        configuration(server, {.rules = "      - { name: hour, key: user, " + hour +
                                        "1/hour }\n  wide: { store: shared, rules: [ { name: wide, key: user, " + hour +
                                        "1000/hour } ] }\n",
                               .chains = "[ wide, api ]"}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 200, "one").refused == 199);
    headgate::testing::client_loop direct(headgate::testing::options_for(server));
    REQUIRE(direct.run_until([&] { return direct.is_ready(); }));
    // Two counters and the texts of their rules.
    CHECK(eventually([&] { return direct.ask({"DBSIZE"}) == ":4"; }));
}

TEST_CASE("redis: requests whose outcome does not count are given back")
{
    redis_server server;
    raw_upstream up(always("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"));
    running_gateway gateway(configuration(
        server, {.rules = "      - { name: hour, key: user, " + hour + "3/hour, outcome: { refund: [ 5xx ] } }\n",
                 .upstream = "up: { servers: [ \"127.0.0.1:" + std::to_string(up.port()) + "\" ] }"}));
    REQUIRE(wait_until_connected(gateway));
    for (int i = 0; i < 12; ++i) {
        CHECK(eventually([&] { // given back a moment after the answer
            const auto result = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
            return status_of(result) == 500;
        }));
    }
}

TEST_CASE("redis: the answer's fields and its log line tell of the settled cost")
{
    redis_server server;
    std::atomic<const char*> tokens{"30"};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty())
            client.send("HTTP/1.1 200 OK\r\nX-Tokens: " + std::string(tokens.load()) +
                        "\r\nContent-Length: 2\r\n\r\nok");
    });
    log_pipe pipe;
    running_gateway gateway(configuration(
        server,
        {.rules = "      - { name: t, key: user, " + hour + "1000/hour, cost: { settle: X-Tokens, reserve: 500 } }\n",
         .upstream = "up: { servers: [ \"127.0.0.1:" + std::to_string(up.port()) + "\" ] }",
         .workers = 1,
         .log = pipe.path()}));
    REQUIRE(wait_until_connected(gateway));
    const auto ask = [&](const char* with) {
        tokens = with;
        return gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
    };
    CHECK(field_of(ask("30"), "RateLimit") == "\"t\";r=970;t=3600");
    CHECK(nlohmann::json::parse(pipe.next_line())["used"] == 30);
    CHECK(field_of(ask("nonsense"), "RateLimit").starts_with("\"t\";r=470;"));
    CHECK(nlohmann::json::parse(pipe.next_line())["used"] == 530);
    CHECK(metric(gateway, "headgate_unreadable_costs_total{route=\"all\"}") == 1);
    // 470 are left: 500 have to wait for the window's end.
    const auto refused = ask("1");
    CHECK(status_of(refused) == 429);
    CHECK(std::stol(field_of(refused, "Retry-After")) > 3500);
    CHECK(field_of(refused, "RateLimit").starts_with("\"t\";r=470;t=3"));
}

TEST_CASE("redis: a cost above what the rule can ever hold gets no Retry-After, one above what is left does")
{
    redis_server server;
    for (const std::string rule : {"fixed_window, limit: 1000/day", "sliding_log, limit: 1000/day",
                                   "sliding_window, limit: 1000/day", "token_bucket, limit: 1000/day"}) {
        CAPTURE(rule);
        running_gateway gateway(configuration(server, {.rules = "      - { name: day, key: user, algorithm: " + rule +
                                                                ", cost: { header: X-Cost, max: 5000 } }\n"}));
        REQUIRE(wait_until_connected(gateway));
        const auto costing = [&](int cost) {
            return gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: " + rule.substr(0, rule.find(',')) +
                               "\r\nX-Cost: " + std::to_string(cost) + "\r\nConnection: close\r\n\r\n");
        };
        CHECK(status_of(costing(600)) == 200);
        CHECK(!field_of(costing(500), "Retry-After").empty());
        const auto never = costing(1001);
        CHECK(status_of(never) == 429);
        CHECK(field_of(never, "Retry-After").empty());
        CHECK(field_of(never, "RateLimit") == "\"day\";r=400");
    }
}

TEST_CASE("redis: requests in flight are counted over all gateways, and freed when they end")
{
    redis_server server;
    std::mutex lock;
    std::condition_variable changed;
    bool may_answer = false;
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty()) {
            std::unique_lock guard(lock);
            changed.wait(guard, [&] { return may_answer; });
            guard.unlock();
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    const shared_setup how{.rules = "      - { name: parallel, key: user, algorithm: concurrency, limit: 3 }\n",
                           .upstream = "up: { servers: [ \"127.0.0.1:" + std::to_string(up.port()) + "\" ] }"};
    running_gateway one(configuration(server, how)), two(configuration(server, how));
    REQUIRE(wait_until_connected(one));
    REQUIRE(wait_until_connected(two));
    const std::string request = "GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\n\r\n";
    std::vector<raw_connection> held;
    for (int i = 0; i < 3; ++i) {
        held.push_back((i % 2 ? two : one).connect());
        held.back().send(request);
    }
    REQUIRE(eventually([&] { return count(up.received(), "GET /") == 3; }));
    CHECK(ask_for(one, 1, "one").refused == 1);
    CHECK(ask_for(two, 1, "one").refused == 1);
    {
        std::lock_guard guard(lock);
        may_answer = true;
    }
    changed.notify_all();
    for (auto& each : held)
        CHECK(status_of(each.read_response()) == 200);
    CHECK(eventually([&] { return ask_for(two, 1, "one").passed == 1; }));
}

TEST_CASE("redis: a reload with another limit keeps the used amount")
{
    redis_server server;
    const auto with = [&](const std::string& limit) {
        return configuration(server, {.rules = "      - { name: hour, key: user, " + hour + limit + " }\n"});
    };
    running_gateway gateway(with("10/hour"));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 12, "one").passed == 10);
    gateway.reload(with("25/hour"));
    REQUIRE(eventually([&] {
        const auto result = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: other\r\nConnection: close\r\n\r\n");
        return field_of(result, "RateLimit-Policy").find("q=25") != std::string::npos;
    }));
    auto after = ask_for(gateway, 20, "one");
    after += ask_for(gateway, 20, "one");
    CHECK(after.passed <= 15);
    CHECK(after.passed >= 14); // a worker that still has the old limit may have charged once more
}

TEST_CASE("redis: over TLS, with a client certificate; an untrusted server is a reported outage")
{
    headgate::testing::authority ours, theirs;
    const auto certificate = ours.issue("IP:127.0.0.1"), mine = ours.issue("DNS:gateway");
    redis_server server({"--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key,
                         "--tls-ca-cert-file", ours.ca()},
                        redis_server::speaks::tls);
    const auto with = [&](const std::string& ca) {
        return configuration("rediss://127.0.0.1:" + std::to_string(server.port()),
                             {.rules = "      - { name: hour, key: user, " + hour + "5/hour }\n",
                              .store_options = "timeout: 5s, on_outage: open, tls: { ca: \"" + ca +
                                               "\", certificate: \"" + mine.certificate + "\", key: \"" + mine.key +
                                               "\" }"});
    };
    running_gateway gateway(with(ours.ca()));
    REQUIRE(wait_until_connected(gateway));
    CHECK(ask_for(gateway, 9, "one").passed == 5);

    running_gateway wary(with(theirs.ca()));
    CHECK(eventually([&] { return ask_admin(wary, "/readyz").find("the server's certificate") != std::string::npos; }));
    CHECK(ask_for(wary, 9, "one").passed == 9); // open
}

TEST_CASE("redis: over a Unix socket, as a user with only the permissions in docs/redis.md")
{
    redis_server server({"--user",  "default",       "off",       "--user",         "headgate", "on",
                         ">secret", "resetchannels", "~hg:1:*",   "-@all",          "+eval",    "+evalsha",
                         "+get",    "+set",          "+setrange", "+del",           "+time",    "+ping",
                         "+scan",   "+select",       "+role",     "+client|setname"});
    running_gateway gateway(
        configuration("unix://" + server.socket_path(),
                      {.rules = "      - { name: hour, key: user, " + hour +
                                "5/hour }\n"
                                "      - { name: all, key: route, " +
                                hour +
                                "1000/hour }\n"
                                "      - { name: parallel, key: user, algorithm: concurrency, limit: 50 }\n",
                       .store_options = "timeout: 5s, on_outage: closed, username: headgate, password: secret"}));
    REQUIRE(wait_until_connected(gateway));
    const auto result = ask_for(gateway, 9, "one");
    CHECK(result.passed == 5);
    CHECK(result.refused == 4);
    CHECK(metric(gateway, "headgate_redis_lost_corrections_total{store=\"shared\"}") == 0); // slots were given back
    CHECK(metric(gateway, "headgate_redis_errors_total{store=\"shared\"}") == 0);
}
