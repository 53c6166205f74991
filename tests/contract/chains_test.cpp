// Chains of several rules and keys, as every store must decide them.
#include "tests/contract/limiter_under_test.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace headgate::testing;

namespace {

rule minute(std::uint64_t n) { return named("minute", token_bucket(n, 60s, n)); }
rule day(std::uint64_t n) { return named("day", fixed_window(n, 24h)); }
const auto noon = start + 5h;

} // namespace

TEST_CASE("contract: a chain of 60 per minute and 10,000 per day for each user, and a total for all")
{
    on_every_store([](limiter_under_test& s) {
        s.define("user", {minute(60), day(10'000)}, noon);
        s.define("total", {named("total", fixed_window(100, 60s))}, noon);
        const chain ann{{"user", "ann"}, {"total", "api"}}, bob{{"user", "bob"}, {"total", "api"}};
        CHECK(s.takes(70, ann, noon) == 60);
        // Each rule has its own counter: ten refusals cost the day and the total nothing.
        const auto got = s.take(ann, noon);
        REQUIRE(got.decisions.size() == 3);
        CHECK(got.decisions[0].remaining == 0);
        CHECK(got.decisions[1].remaining == 9'940);
        CHECK(got.decisions[2].remaining == 40);
        CHECK(s.takes(70, bob, noon) == 40);
        const auto refused = s.take(bob, noon);
        CHECK(refused.decisions[0].admitted); // the decisions show which rule refused
        CHECK(refused.decisions[1].admitted);
        CHECK_FALSE(refused.decisions[2].admitted);
        CHECK(refused.retry_after == refused.decisions[2].retry_after);
        // A bucket is refilled before it decides: an empty key that has waited is admitted.
        CHECK(s.takes(5, ann, noon + 60s) == 5);
    });
}

TEST_CASE("contract: the wait includes rules that refuse only after they counted the refusal of another rule")
{
    on_every_store([](limiter_under_test& s) {
        auto slow = named("slow", token_bucket(1, 100s, 2)), fast = named("fast", token_bucket(1, 1s, 1));
        slow.count_refused = true;
        s.define("a", {slow, fast}, noon);
        const chain one{{"a", "k"}};
        CHECK(s.take(one, noon).admitted);
        const auto refused = s.take(one, noon); // by `fast`; `slow` had one left and charges the refusal
        CHECK_FALSE(refused.admitted);
        CHECK(refused.decisions[0].admitted);
        CHECK_FALSE(refused.decisions[1].admitted);
        CHECK(refused.retry_after == 100s);
        CHECK(s.look({{"a", "k", {1, 1}}}, noon + 100s - 1us).retry_after == 1us);
        CHECK(s.take(one, noon + 100s).admitted);
    });
}

TEST_CASE("contract: a refusal by the second key charges nothing to the first, and the wait satisfies all rules")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("fast", token_bucket(1, 1s, 5))}, noon);
        s.define("b", {named("slow", token_bucket(1, 10s, 1)), named("log", sliding_log(1, 7s))}, noon);
        const chain both{{"a", "k"}, {"b", "k"}};
        CHECK(s.take(both, noon).admitted);
        for (int i = 0; i < 10; ++i) {
            const auto refused = s.take(both, noon);
            CHECK_FALSE(refused.admitted);
            CHECK(refused.retry_after == 10s);
            CHECK(refused.decisions[2].retry_after == 7s);
        }
        CHECK(s.look(both, noon).decisions[0].remaining == 4); // nothing was charged by the refusals
        CHECK(s.inspect("a", "k", noon)->decisions.at(0).remaining == 4);
        CHECK_FALSE(s.take(both, noon + 10s - 1us).admitted);
        CHECK(s.take(both, noon + 10s).admitted);
    });
}

TEST_CASE("contract: a cost above the limit has no wait and charges nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(10), day(100)}, noon);
        const auto got = s.take({{"a", "k", {11, 1}}}, noon);
        CHECK_FALSE(got.admitted);
        CHECK(got.retry_after == never);
        CHECK(s.take({{"a", "k", {UINT64_MAX, UINT64_MAX}}}, noon).retry_after == never);
        CHECK(s.look({{"a", "k", {0, 0}}}, noon).decisions[1].remaining == 100);
        CHECK(s.take({{"a", "k", {10, 3}}}, noon).decisions[1].remaining == 97);
    });
}

TEST_CASE("contract: with several shaping rules the longest delay counts")
{
    on_every_store([](limiter_under_test& s) {
        auto fast = named("fast", leaky_bucket(2, 1s, 9)), slow = named("slow", leaky_bucket(1, 1s, 9));
        fast.delay_after = slow.delay_after = 0;
        s.define("fast", {fast}, noon);
        s.define("slow", {slow}, noon);
        const chain both{{"fast", "k"}, {"slow", "k"}}, turned{{"slow", "t"}, {"fast", "t"}};
        CHECK(s.takes(2, turned, noon) == 2);
        CHECK(s.take(turned, noon).delay == 2s);
        CHECK(s.take(both, noon).delay == 0s);
        CHECK(s.take(both, noon).delay == 1s);
        const auto third = s.take(both, noon);
        CHECK(third.delay == 2s);
        s.give_back(both, third.charged_at, noon); // the client closed its connection during the delay
        CHECK(s.take(both, noon).delay == 2s);
    });
}

TEST_CASE("contract: a shadow rule counts with the others and never refuses")
{
    on_every_store([](limiter_under_test& s) {
        auto tried = named("tried", token_bucket(1, 1s, 2));
        tried.shadow = true;
        s.define("a", {minute(5), tried}, noon);
        const chain k{{"a", "k"}};
        CHECK_FALSE(s.take(k, noon).shadow_refused);
        CHECK_FALSE(s.take(k, noon).shadow_refused);
        const auto third = s.take(k, noon);
        CHECK(third.admitted);
        CHECK(third.shadow_refused);
        CHECK_FALSE(third.decisions[1].admitted);
        CHECK(s.takes(9, k, noon) == 2);
        CHECK(s.take(k, noon).retry_after == 12s); // the wait of the shadow rule does not count
        CHECK_FALSE(s.take(k, noon + 12s).shadow_refused);
    });
}

TEST_CASE("contract: refused requests are charged only to rules with count_refused")
{
    on_every_store([](limiter_under_test& s) {
        auto strict = named("strict", sliding_log(3, 60s));
        strict.count_refused = true;
        s.define("a", {minute(100), strict}, noon);
        const chain k{{"a", "k"}};
        CHECK(s.takes(3, k, noon) == 3);
        CHECK(s.takes(3, k, noon + 30s) == 0);
        CHECK(s.takes(3, k, noon + 60s) == 0); // the three refused requests count from their own time
        CHECK(s.look(k, noon + 60s).decisions[0].remaining == 100);
        CHECK(s.takes(1, k, noon + 120s) == 1);
    });
}

TEST_CASE("contract: looking decides like taking, has the wait, and changes nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(2)}, noon);
        const chain k{{"a", "k"}};
        for (int i = 0; i < 9; ++i)
            CHECK(s.look(k, noon).admitted);
        CHECK_FALSE(s.inspect("a", "k", noon));
        CHECK(s.takes(9, k, noon) == 2);
        const auto got = s.look(k, noon);
        CHECK_FALSE(got.admitted);
        CHECK(got.retry_after == 30s);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 0);
    });
}

TEST_CASE("contract: a key that was only looked at starts with `initial` at its first request")
{
    on_every_store([](limiter_under_test& s) {
        auto r = named("slow", token_bucket(1, 1s, 10));
        r.initial = 2;
        s.define("a", {r}, noon);
        const chain k{{"a", "k"}};
        CHECK(s.look(k, noon).decisions[0].remaining == 1);
        CHECK_FALSE(s.inspect("a", "k", noon));
        CHECK(s.takes(9, k, noon + 5s) == 2);
        CHECK(s.takes(9, k, noon + 8s) == 3);
    });
}

TEST_CASE("contract: a clock that steps back gives nothing away")
{
    on_every_store([](limiter_under_test& s) {
        s.define("bucket", {named("b", token_bucket(1, 1s, 3))}, noon);
        s.define("log", {named("l", sliding_log(3, 10s))}, noon);
        s.define("fixed", {named("f", fixed_window(3, 10s))}, noon);
        s.define("sliding", {named("s", sliding_window(3, 10s))}, noon);
        for (const char* group : {"bucket", "log", "fixed", "sliding"}) {
            CAPTURE(std::string(group));
            const chain k{{group, "k"}};
            CHECK(s.takes(5, k, noon) == 3);
            for (const auto back : {1us, microseconds{5s}, microseconds{24h * 400}})
                CHECK(s.takes(5, k, noon - back) == 0);
        }
    });
}

TEST_CASE("contract: 1,000 concurrent callers on one key admit exactly the limit")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(60), day(10'000)}, noon);
        std::atomic<int> admitted{0};
        std::vector<std::thread> callers;
        for (int i = 0; i < 8; ++i) {
            callers.emplace_back([&] {
                for (int call = 0; call < 125; ++call)
                    admitted += s.take({{"a", "k"}}, noon).admitted ? 1 : 0;
            });
        }
        for (auto& t : callers)
            t.join();
        CHECK(admitted == 60);
        CHECK(s.look({{"a", "k", {0, 0}}}, noon).decisions[1].remaining == 9'940);
    });
}

TEST_CASE("contract: a reload keeps what was used")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(100)}, noon);
        CHECK(s.take({{"a", "k", {80}}}, noon).admitted);
        s.define("a", {minute(200)}, noon);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 120);
        s.define("a", {minute(50), day(7)}, noon);
        const auto got = s.look({{"a", "k", {1, 0}}}, noon);
        CHECK(got.decisions[0].retry_after == 1200ms);
        CHECK(got.decisions[1].remaining == 7); // a new rule has counted nothing
        s.define("a", {named("minute", sliding_log(10, 60s))}, noon);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 0);
    });
}
