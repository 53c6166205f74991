// Reservations and operators' verbs, as every store must answer them.
#include "tests/contract/limiter_under_test.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

const auto noon = start + 5h;
std::uint64_t left(limiter_under_test& s, const std::string& group, const std::string& key, time_point now)
{
    const auto said = s.inspect(group, key, now);
    return said ? said->decisions.at(0).remaining : UINT64_MAX;
}

} // namespace

TEST_CASE("contract: token list, max 5: reset fills it, and of 8 gets 5 succeed")
{
    on_every_store([](limiter_under_test& s) {
        s.define("list", {named("list", token_bucket(1, 720h, 5))}, noon);
        const chain k{{"list", "k"}};
        CHECK(s.takes(8, k, noon) == 5);
        CHECK(s.reset("list", "k", noon));
        CHECK(s.takes(8, k, noon) == 5);
    });
}

TEST_CASE("contract: token list, max 5: add(10) adds 5 and says so, and of 6 gets 5 succeed")
{
    on_every_store([](limiter_under_test& s) {
        s.define("list", {named("list", token_bucket(1, 720h, 5))}, noon);
        const chain k{{"list", "k"}};
        CHECK(s.takes(8, k, noon) == 5);
        CHECK(s.grant("list", "k", 10, noon) == 5);
        CHECK(s.takes(6, k, noon) == 5);
        CHECK(s.grant("list", "k", 2, noon) == 2);
        CHECK(s.takes(6, k, noon) == 2);
        CHECK(s.grant("list", "nobody", 2, noon) == 0);
        CHECK(s.grant("nothing", "k", 2, noon) == 0);
    });
}

TEST_CASE("contract: a grant makes room under every algorithm, also for what an earlier window holds")
{
    on_every_store([](limiter_under_test& s) {
        const std::pair<std::string, rule> rules[] = {{"token", token_bucket(1, 720h, 10)},
                                                      {"fixed", fixed_window(10, 60s)},
                                                      {"sliding", sliding_window(10, 60s)},
                                                      {"log", sliding_log(10, 60s)}};
        for (const auto& [name, r] : rules) {
            CAPTURE(name);
            s.define(name, {named(name, r)}, noon);
            CHECK(s.takes(20, {{name, "k"}}, noon) == 10);
            CHECK(s.grant(name, "k", 3, noon) == 3);
            CHECK(s.takes(20, {{name, "k"}}, noon) == 3);
        }
        // Halfway through the next window five are left of the ten.
        const auto later = noon + 90s;
        CHECK(left(s, "sliding", "k", later) == 5);
        CHECK(s.grant("sliding", "k", 3, later) == 3);
        CHECK(left(s, "sliding", "k", later) == 8);
        CHECK(s.grant("sliding", "k", 30, later) == 2);
        CHECK(left(s, "sliding", "k", later) == 10);
    });
}

TEST_CASE("contract: reserve, then settle for less, for more, for the same, or for nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("bytes", token_bucket(1, 1s, 100))}, noon);
        const chain k{{"a", "k", {40}}};
        reservation id = 0;
        CHECK(s.reserve(k, noon, 60s, id).admitted);
        CHECK(id != 0);
        CHECK(left(s, "a", "k", noon) == 60);
        CHECK(s.settle(id, {10}, noon));
        CHECK(left(s, "a", "k", noon) == 90);
        CHECK_FALSE(s.settle(id, {10}, noon)); // once only
        CHECK(left(s, "a", "k", noon) == 90);

        CHECK(s.reserve(k, noon, 60s, id).admitted);
        CHECK(s.settle(id, {60}, noon));
        CHECK(left(s, "a", "k", noon) == 30);

        CHECK_FALSE(s.reserve(k, noon, 60s, id).admitted);
        CHECK(id == 0);
        CHECK_FALSE(s.settle(0, {1}, noon));

        CHECK(s.reserve({{"a", "k", {30}}}, noon, 60s, id).admitted);
        CHECK(s.settle(id, {30}, noon));
        CHECK(left(s, "a", "k", noon) == 0);
        CHECK(s.reserve(k, noon + 50s, 60s, id).admitted);
        CHECK(s.settle(id, {}, noon + 50s));
        CHECK(left(s, "a", "k", noon + 50s) == 50);
    });
}

TEST_CASE("contract: a settled cost may overdraw, and is waited off")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("bytes", token_bucket(1, 1s, 10))}, noon);
        reservation id = 0;
        CHECK(s.reserve({{"a", "k", {5}}}, noon, 60s, id).admitted);
        CHECK(s.settle(id, {25}, noon));
        CHECK(s.take({{"a", "k"}}, noon).retry_after == 16s);
        for (int i = 0; i < 3000; ++i) { // no run of absurd costs wraps round to nothing
            CHECK(s.reserve({{"a", "k", {0}}}, noon + 1h, 60s, id).admitted == (i == 0));
            s.settle(id, {UINT64_MAX}, noon + 1h);
        }
    });
}

TEST_CASE("contract: a reservation nobody settles is given back when its time is over")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("bytes", fixed_window(100, 24h))}, noon);
        reservation id = 0;
        CHECK(s.reserve({{"a", "k", {40}}}, noon, 60s, id).admitted);
        CHECK(s.take({{"a", "k", {1}}}, noon).admitted);
        s.expire(noon + 60s - 1us);
        CHECK(left(s, "a", "k", noon + 60s) == 59);
        s.expire(noon + 60s);
        CHECK(left(s, "a", "k", noon + 60s) == 99);
        CHECK_FALSE(s.settle(id, {40}, noon + 61s));
        CHECK(left(s, "a", "k", noon + 61s) == 99);
    });
}

TEST_CASE("contract: a reservation over two keys is settled on both, each with its own costs")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h)), named("bytes", fixed_window(100, 24h))}, noon);
        s.define("b", {named("all", fixed_window(1000, 24h))}, noon);
        reservation id = 0;
        CHECK(s.reserve({{"a", "k", {1, 50}}, {"b", "x", {50}}}, noon, 60s, id).admitted);
        CHECK(s.settle(id, {1, 20, 70}, noon + 1s));
        const auto a = s.inspect("a", "k", noon + 1s);
        CHECK(a->decisions.at(0).remaining == 9);
        CHECK(a->decisions.at(1).remaining == 80);
        CHECK(left(s, "b", "x", noon + 1s) == 930);
    });
}

TEST_CASE("contract: what is given back after a reload goes to the new rule's counter")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(100, 24h))}, noon);
        const chain k{{"a", "k", {30}}};
        const auto said = s.take(k, noon);
        s.define("a", {named("calls", fixed_window(50, 24h))}, noon + 1s);
        CHECK(left(s, "a", "k", noon + 1s) == 20);
        s.give_back(k, said.charged_at, noon + 2s);
        CHECK(left(s, "a", "k", noon + 2s) == 50);
    });
}

TEST_CASE("contract: a request in flight while its rule turns into a rate gives back no token when it ends")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("r", concurrency(10))}, noon);
        const chain k{{"a", "k"}};
        const auto said = s.take(k, noon);
        reservation id = 0;
        s.reserve(k, noon, 60s, id);
        s.define("a", {named("r", fixed_window(10, 24h))}, noon);
        CHECK(s.takes(9, k, noon) == 9);
        s.settle(id, {}, noon);
        CHECK(left(s, "a", "k", noon) == 1);
    });
}

TEST_CASE("contract: a blocked key is refused until its time is over, charges nothing, and can be unblocked")
{
    on_every_store([](limiter_under_test& s) {
        auto calls = named("calls", fixed_window(10, 24h));
        calls.count_refused = true; // a rule's refusals count, an operator's do not
        s.define("a", {calls}, noon);
        const chain k{{"a", "k"}};
        CHECK(s.take(k, noon).admitted);
        CHECK(s.block("a", "k", noon + 60s, noon));
        const auto refused = s.take(k, noon + 20s);
        CHECK_FALSE(refused.admitted);
        CHECK(refused.blocked);
        CHECK(refused.retry_after == 40s);
        CHECK(s.inspect("a", "k", noon + 20s)->blocked_for == 40s);
        CHECK(left(s, "a", "k", noon + 20s) == 9);
        CHECK_FALSE(s.take(k, noon + 60s - 1us).admitted);
        CHECK(s.take(k, noon + 60s).admitted);
        CHECK_FALSE(s.inspect("a", "k", noon + 60s)->blocked_for);

        CHECK(s.block("a", "stranger", noon + 600s, noon + 61s)); // a key never seen
        CHECK_FALSE(s.take({{"a", "stranger"}}, noon + 62s).admitted);
        CHECK(s.unblock("a", "stranger", noon + 63s));
        CHECK_FALSE(s.unblock("a", "stranger", noon + 63s));
        CHECK(s.take({{"a", "stranger"}}, noon + 63s).admitted);
        CHECK_FALSE(s.block("nothing", "k", noon + 600s, noon));
    });
}

TEST_CASE("contract: keys are listed by prefix, in order, and only of their group")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h))}, noon);
        s.define("b", {named("calls", fixed_window(10, 24h))}, noon);
        for (const char* key : {"user:2", "user:1", "ip:1"})
            s.take({{"a", key}}, noon);
        s.take({{"b", "user:3"}}, noon);
        const auto users = s.list("a", "user:", noon);
        REQUIRE(users.size() == 2);
        CHECK(users[0].key == "user:1");
        CHECK(users[1].key == "user:2");
        CHECK(s.list("a", "", noon).size() == 3);
        CHECK(s.list("c", "", noon).empty());
        CHECK_FALSE(s.inspect("a", "user:3", noon));
        CHECK_FALSE(s.reset("a", "user:3", noon));
    });
}

TEST_CASE("contract: a reset frees the rates of a key, not what it has in flight")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h)), named("open", concurrency(5))}, noon);
        s.takes(3, {{"a", "k"}}, noon);
        CHECK(s.reset("a", "k", noon));
        const auto after = s.inspect("a", "k", noon);
        CHECK(after->decisions.at(0).remaining == 10);
        CHECK(after->decisions.at(1).remaining == 2);
        CHECK(s.grant("a", "k", 5, noon) == 0);
    });
}
