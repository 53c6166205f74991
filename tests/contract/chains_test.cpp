// Chains, as every store must decide them: behaviours.md §1 and §3 where several rules or keys meet.
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

TEST_CASE("contract: RateLimit, 60 a minute and 10,000 a day a user, and a total for the interface")
{
    on_every_store([](limiter_under_test& s) {
        s.define("user", {minute(60), day(10'000)}, noon);
        s.define("total", {named("total", fixed_window(100, 60s))}, noon);
        const chain ann{{"user", "ann"}, {"total", "api"}}, bob{{"user", "bob"}, {"total", "api"}};
        CHECK(s.takes(70, ann, noon) == 60);
        // Each rule has its own counter: ten refusals cost the day and the total nothing.
        const auto said = s.take(ann, noon);
        REQUIRE(said.decisions.size() == 3);
        CHECK(said.decisions[0].remaining == 0);
        CHECK(said.decisions[1].remaining == 9'940);
        CHECK(said.decisions[2].remaining == 40);
        CHECK(s.takes(70, bob, noon) == 40);
        const auto refused = s.take(bob, noon);
        CHECK(refused.decisions[0].admitted); // the refusal says which rule refused
        CHECK(refused.decisions[1].admitted);
        CHECK_FALSE(refused.decisions[2].admitted);
        CHECK(refused.retry_after == refused.decisions[2].retry_after);
        // Refilled before it is judged: who is at 0 and has waited passes.
        CHECK(s.takes(5, ann, noon + 60s) == 5);
    });
}

TEST_CASE("contract: the wait counts rules that refuse only because they count the refusal of another")
{
    on_every_store([](limiter_under_test& s) {
        auto slow = named("slow", token_bucket(1, 100s, 2)), fast = named("fast", token_bucket(1, 1s, 1));
        slow.count_refused = true;
        s.define("a", {slow, fast}, noon);
        const chain one{{"a", "k"}};
        CHECK(s.take(one, noon).admitted);
        const auto refused = s.take(one, noon); // by `fast`; `slow` had one left, and counts it
        CHECK_FALSE(refused.admitted);
        CHECK(refused.decisions[0].admitted);
        CHECK_FALSE(refused.decisions[1].admitted);
        CHECK(refused.retry_after == 100s);
        CHECK(s.look({{"a", "k", {1, 1}}}, noon + 100s - 1us).retry_after == 1us);
        CHECK(s.take(one, noon + 100s).admitted);
    });
}

TEST_CASE("contract: a refusal by the second key charges nothing to the first, and the wait satisfies all")
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
        CHECK(s.look(both, noon).decisions[0].remaining == 4); // what was not charged is still there
        CHECK(s.inspect("a", "k", noon)->decisions.at(0).remaining == 4);
        CHECK_FALSE(s.take(both, noon + 10s - 1us).admitted);
        CHECK(s.take(both, noon + 10s).admitted);
    });
}

TEST_CASE("contract: a cost that can never fit has no wait, and takes nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(10), day(100)}, noon);
        const auto said = s.take({{"a", "k", {11, 1}}}, noon);
        CHECK_FALSE(said.admitted);
        CHECK(said.retry_after == never);
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
        s.give_back(both, third.charged_at, noon); // the client went away while it waited
        CHECK(s.take(both, noon).delay == 2s);
    });
}

TEST_CASE("contract: a shadow rule counts beside the others and never refuses")
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
        CHECK(s.take(k, noon).retry_after == 12s); // the shadow's wait is nobody's
        CHECK_FALSE(s.take(k, noon + 12s).shadow_refused);
    });
}

TEST_CASE("contract: count_refused makes who hammers wait, and only where the rule says so")
{
    on_every_store([](limiter_under_test& s) {
        auto strict = named("strict", sliding_log(3, 60s));
        strict.count_refused = true;
        s.define("a", {minute(100), strict}, noon);
        const chain k{{"a", "k"}};
        CHECK(s.takes(3, k, noon) == 3);
        CHECK(s.takes(3, k, noon + 30s) == 0);
        CHECK(s.takes(3, k, noon + 60s) == 0); // the three refused ones count from when they came
        CHECK(s.look(k, noon + 60s).decisions[0].remaining == 100);
        CHECK(s.takes(1, k, noon + 120s) == 1);
    });
}

TEST_CASE("contract: looking judges like taking, says the wait, and changes nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(2)}, noon);
        const chain k{{"a", "k"}};
        for (int i = 0; i < 9; ++i)
            CHECK(s.look(k, noon).admitted);
        CHECK_FALSE(s.inspect("a", "k", noon));
        CHECK(s.takes(9, k, noon) == 2);
        const auto said = s.look(k, noon);
        CHECK_FALSE(said.admitted);
        CHECK(said.retry_after == 30s);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 0);
    });
}

TEST_CASE("contract: a key that was only looked at starts with `initial` when it is first seen")
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

TEST_CASE("contract: time that steps back counts as no time at all, and forward again is not counted twice")
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
            CHECK(s.takes(5, k, noon) == 0);
        }
        CHECK(s.takes(5, {{"bucket", "k"}}, noon + 1s) == 1);
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

TEST_CASE("contract: a reload keeps what was used, in the store as in the arithmetic")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {minute(100)}, noon);
        CHECK(s.take({{"a", "k", {80}}}, noon).admitted);
        s.define("a", {minute(200)}, noon);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 120);
        s.define("a", {minute(50), day(7)}, noon);
        const auto said = s.look({{"a", "k", {1, 0}}}, noon);
        CHECK(said.decisions[0].retry_after == 1200ms);
        CHECK(said.decisions[1].remaining == 7); // a rule that is new knows nobody
        s.define("a", {named("minute", sliding_log(10, 60s))}, noon);
        CHECK(s.look({{"a", "k", {0}}}, noon).decisions[0].remaining == 0);
    });
}
