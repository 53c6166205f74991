// Gateways that share a Redis Cluster.
#include "tests/gateway_redis/support.hpp"
#include "tests/redis_client/cluster_group.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

using namespace headgate::tests;
using headgate::testing::cluster_group;

namespace {

const std::string hour = "algorithm: fixed_window, align: first, limit: ";

std::string url_of(const cluster_group& group)
{
    std::string all = "redis+cluster://";
    for (std::size_t i = 0; i < group.nodes.size(); ++i)
        all += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(group.nodes[i]->port());
    return all;
}

std::string field(const running_gateway& gateway, const std::string& key)
{
    const auto result = gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: " + key + "\r\nConnection: close\r\n\r\n");
    return field_of(result, "RateLimit");
}

// Returns how many keys a node has.
int ask_keys(const redis_server& node) { return std::stoi(headgate::testing::ask_server(node, {"DBSIZE"})); }

} // namespace

TEST_CASE("redis cluster: two gateways, keys on every node, a chain over several slots: exact, all or none charged")
{
    cluster_group group;
    const shared_setup how{.rules = "      - { name: minute, key: user, " + hour +
                                    "50/hour }\n"
                                    "      - { name: day, key: user, " +
                                    hour +
                                    "20/day }\n"
                                    "      - { name: all, key: route, " +
                                    hour + "130/hour }\n"};
    running_gateway one(configuration(url_of(group), how)), two(configuration(url_of(group), how));
    REQUIRE(wait_until_connected(one));
    REQUIRE(wait_until_connected(two));
    // Six users use their 20 per day and leave 10 of the route's for the seventh, on any nodes.
    for (int user = 0; user < 6; ++user) {
        auto sum = ask_for(one, 13, "user" + std::to_string(user));
        sum += ask_for(two, 13, "user" + std::to_string(user));
        CHECK(sum.passed == 20);
        CHECK(sum.other == 0);
    }
    auto last = ask_for(two, 8, "last");
    last += ask_for(one, 8, "last");
    CHECK(last.passed == 10);
    CHECK(field(one, "user0").find("\"minute\";r=30") != std::string::npos); // refusals charge nothing
    CHECK(eventually([&] { return field(one, "last").find("\"minute\";r=40") != std::string::npos; }));
    const auto metrics = ask_admin(one, "/metrics");
    CHECK(metrics.find("headgate_redis_failures_total{store=\"shared\"} 0") != std::string::npos);
    CHECK(metrics.find("headgate_redis_lost_reservations_total{store=\"shared\"} 0") != std::string::npos);
    CHECK(ask_admin(one, "/readyz").find("\"warnings\":[]") != std::string::npos);
}

TEST_CASE("redis cluster: a node lost: its keys have an outage, other keys are decided until the cluster is down")
{
    cluster_group group(3, 0, {"--cluster-require-full-coverage", "no"});
    const shared_setup how{.rules = "      - { name: hour, key: user, " + hour + "5/hour }\n",
                           .store_options = "timeout: 2s, on_outage: open",
                           .workers = 1};
    running_gateway gateway(configuration(url_of(group), how));
    REQUIRE(wait_until_connected(gateway));
    ask_for(gateway, 2, "first");               // the rules are published once
    const auto key_on = [&](std::size_t node) { // the key's name in Redis, which decides its node
        for (int i = 0;; ++i) {
            const auto user = "u" + std::to_string(i);
            const auto before = ask_keys(*group.nodes[node]);
            ask_for(gateway, 1, user);
            if (ask_keys(*group.nodes[node]) > before)
                return user;
        }
    };
    const auto lost = key_on(1), kept = key_on(0);
    group.nodes[1]->stop();
    REQUIRE(eventually([&] {
        const auto result = ask_admin(gateway, "/readyz");
        return status_of(result) == 200 && result.find("some keys are out of reach: 127.0.0.1:") != std::string::npos;
    }));
    CHECK(ask_for(gateway, 10, lost).passed == 10); // open
    CHECK(ask_for(gateway, 10, kept).passed == 4);
    group.nodes[1]->start();
    REQUIRE(wait_until_connected(gateway));
    CHECK(eventually([&] { return ask_for(gateway, 10, lost).refused > 0; }));
    CHECK(ask_for(gateway, 10, lost).passed == 0);
}

TEST_CASE("redis cluster: a failover is two lines in the log, however many workers there are")
{
    std::ostringstream log;
    const auto former = spdlog::default_logger();
    const auto level = spdlog::get_level();
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    {
        cluster_group group(3, 3);
        const shared_setup how{.rules = "      - { name: hour, key: user, " + hour + "5/hour }\n",
                               .store_options = "timeout: 2s, on_outage: open",
                               .workers = 4};
        running_gateway gateway(configuration(url_of(group), how));
        spdlog::set_level(spdlog::level::info);
        REQUIRE(wait_until_connected(gateway));
        group.nodes[1]->stop();
        REQUIRE(eventually(
            [&] { return ask_admin(gateway, "/readyz").find("some keys are out of reach") != std::string::npos; }));
        REQUIRE(wait_until_connected(gateway)); // its replica
        for (int i = 0; i < 60; ++i)            // by every worker
            ask_for(gateway, 1, "user" + std::to_string(i));
    }
    spdlog::set_default_logger(former);
    spdlog::set_level(level);
    const auto all = log.str();
    CAPTURE(all);
    CHECK(count(all, "Redis does not know our scripts") <= 1);
    CHECK(count(all, "store shared: ") <= 4);
    CHECK(count(all, "some keys are out of reach: 127.0.0.1:") == 1);
    CHECK(count(all, "connected to redis+cluster://") == 2); // at the start, and after the failover
}
