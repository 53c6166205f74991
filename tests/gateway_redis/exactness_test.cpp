// Several gateways, one limit: exactly as many requests pass as the limit allows.
#include "tests/gateway_redis/support.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace headgate::tests;

namespace {

const std::string hour = "algorithm: fixed_window, align: first, limit: ";

} // namespace

TEST_CASE("redis: four gateways of two workers, one key, 10,000 requests at once: exactly 100 pass")
{
    redis_server server;
    const shared_setup how{.rules = "      - { name: hour, key: user, " + hour + "100/hour }\n"};
    std::vector<std::unique_ptr<running_gateway>> gateways;
    for (int i = 0; i < 4; ++i) {
        gateways.push_back(std::make_unique<running_gateway>(configuration(server, how)));
        REQUIRE(wait_until_connected(*gateways.back()));
    }
    std::mutex lock;
    tally all;
    std::vector<std::thread> clients;
    for (int i = 0; i < 16; ++i)
        clients.emplace_back([&, i] {
            const auto mine = ask_for(*gateways[static_cast<std::size_t>(i % 4)], 625, "one");
            std::lock_guard guard(lock);
            all += mine;
        });
    for (auto& c : clients)
        c.join();
    CHECK(all.passed == 100);
    CHECK(all.refused == 9900);
}

TEST_CASE("redis: a chain is decided as a whole: a request that the day refuses is not charged by the minute")
{
    redis_server server;
    const shared_setup how{.rules = "      - { name: minute, key: user, " + hour +
                                    "50/hour }\n"
                                    "      - { name: day, key: user, " +
                                    hour +
                                    "20/day }\n"
                                    "      - { name: all, key: route, " +
                                    hour + "30/hour }\n"};
    running_gateway one(configuration(server, how)), two(configuration(server, how));
    REQUIRE(wait_until_connected(one));
    REQUIRE(wait_until_connected(two));
    // 20 requests of a pass the day's rule; b gets what a left of the route's 30.
    auto of_a = ask_for(one, 30, "a");
    of_a += ask_for(two, 30, "a");
    CHECK(of_a.passed == 20);
    auto of_b = ask_for(two, 15, "b");
    of_b += ask_for(one, 15, "b");
    CHECK(of_b.passed == 10);
    const auto result = one.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: a\r\nConnection: close\r\n\r\n");
    CHECK(status_of(result) == 429);
    CHECK(field_of(result, "RateLimit").find("\"minute\";r=30") != std::string::npos);
    CHECK(field_of(result, "RateLimit").find("\"day\";r=0") != std::string::npos);
}

TEST_CASE("redis: chains of four gateways at once: the users and the route are charged equally")
{
    redis_server server;
    const shared_setup how{.rules = "      - { name: hour, key: user, " + hour +
                                    "40/hour }\n"
                                    "      - { name: day, key: user, " +
                                    hour +
                                    "1000/day }\n"
                                    "      - { name: all, key: route, " +
                                    hour + "100/hour }\n"};
    std::vector<std::unique_ptr<running_gateway>> gateways;
    for (int i = 0; i < 4; ++i) {
        gateways.push_back(std::make_unique<running_gateway>(configuration(server, how)));
        REQUIRE(wait_until_connected(*gateways.back()));
    }
    std::array<tally, 4> of_user;
    std::mutex lock;
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < 16; ++i)
        clients.emplace_back([&, i] {
            const auto mine = ask_for(*gateways[i / 4], 60, "user" + std::to_string(i % 4));
            std::lock_guard guard(lock);
            of_user[i % 4] += mine;
        });
    for (auto& c : clients)
        c.join();
    int passed = 0;
    for (std::size_t i = 0; i < of_user.size(); ++i) {
        CAPTURE(i);
        passed += of_user[i].passed;
        const auto result = gateways[i]->ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: user" + std::to_string(i) +
                                             "\r\nConnection: close\r\n\r\n");
        CHECK(status_of(result) == 429);
        const auto left = field_of(result, "RateLimit");
        CHECK(left.find("\"hour\";r=" + std::to_string(40 - of_user[i].passed) + ";") != std::string::npos);
        CHECK(left.find("\"day\";r=" + std::to_string(1000 - of_user[i].passed) + ";") != std::string::npos);
        CHECK(left.find("\"all\";r=0") != std::string::npos);
    }
    CHECK(passed == 100);
}

TEST_CASE("redis: gateways whose clocks are ten seconds apart agree, because Redis's clock decides")
{
    redis_server server;
    const shared_setup how{.rules = "      - { name: window, key: user, algorithm: sliding_window, limit: 100/hour }\n"
                                    "      - { name: bucket, key: user, algorithm: token_bucket, limit: 100/hour }\n"
                                    "      - { name: log, key: user, algorithm: sliding_log, limit: 100/hour }\n"};
    running_gateway one(configuration(server, how)), two(configuration(server, how)), three(configuration(server, how));
    two.app().clock().advance(std::chrono::seconds{10});
    three.app().clock().advance(std::chrono::milliseconds{500});
    for (auto* each : {&one, &two, &three})
        REQUIRE(wait_until_connected(*each));
    tally all;
    for (int round = 0; round < 10; ++round) {
        for (auto* each : {&one, &two, &three})
            all += ask_for(*each, 5, "one");
    }
    CHECK(all.passed == 100);
    CHECK(all.refused == 50);
}
