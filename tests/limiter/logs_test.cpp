// Sliding logs in the memory store: they grow with their records, and merge records when there is no memory.
#include "tests/limiter/memory_under_test.hpp"
#include "tests/support/reference.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

TEST_CASE("sliding log in the store: it grows from four records to its limit and stays exact")
{
    memory_under_test s;
    s.define("a", {named("log", sliding_log(1000, 60s)), named("other", fixed_window(5000, 24h))}, start);
    for (int i = 0; i < 1000; ++i)
        CHECK(s.take({{"a", "k"}}, start + i * 10ms).admitted);
    CHECK(s.take({{"a", "k"}}, start + 10s).retry_after == 50s);
    for (int i = 0; i < 1000; ++i) {
        CHECK_FALSE(s.take({{"a", "k"}}, start + 60s + i * 10ms - 1us).admitted);
        CHECK(s.take({{"a", "k"}}, start + 60s + i * 10ms).admitted);
    }
    CHECK(s.inspect("a", "k", start + 71s)->decisions[1].remaining == 3000);
    CHECK(s.store.stats().merged_records == 0);
}

TEST_CASE("sliding log in the store: growing keeps the debt of another rule of the entry")
{
    memory_under_test s;
    s.define("a", {named("bytes", token_bucket(1, 1s, 10)), named("log", sliding_log(100, 1h))}, start);
    for (int i = 0; i < 4; ++i)
        CHECK(s.take({{"a", "k", {0, 1}}}, start + microseconds{i}).admitted);
    reservation id = 0;
    CHECK(s.reserve({{"a", "k", {1, 0}}}, start + 4us, id).admitted);
    CHECK(s.settle(id, {110, 5}, start + 5us)); // the log must grow for this
    CHECK(s.take({{"a", "k"}}, start + 5us).decisions[0].retry_after > 100s);
}

TEST_CASE("sliding log in the store: a blocked key keeps its records")
{
    memory_under_test s;
    s.define("a", {named("log", sliding_log(100, 1h))}, start);
    s.takes(3, {{"a", "k"}}, start);
    CHECK(s.block("a", "k", start + 10s, start));
    reservation id = 0;
    CHECK_FALSE(s.reserve({{"a", "k"}}, start, id).admitted);
    CHECK(s.unblock("a", "k", start + 1s));
    for (int i = 0; i < 20; ++i)
        CHECK(s.take({{"a", "k"}}, start + 1s + microseconds{i}).admitted);
    CHECK(s.inspect("a", "k", start + 2s)->decisions[0].remaining == 77);
}

TEST_CASE("sliding log in the store: after a reload with a higher limit it keeps its records and grows")
{
    memory_under_test s;
    s.define("a", {named("log", sliding_log(5, 60s))}, start);
    for (int i = 0; i < 5; ++i)
        CHECK(s.take({{"a", "k"}}, start + i * 1s).admitted);
    s.define("a", {named("log", sliding_log(50, 60s))}, start + 5s);
    for (int i = 0; i < 45; ++i)
        CHECK(s.take({{"a", "k"}}, start + 5s + i * 1ms).admitted);
    CHECK(s.take({{"a", "k"}}, start + 6s).retry_after == 54s);
}

TEST_CASE("sliding log in the store: a reload without memory keeps all use, and no entry of the old rules")
{
    constexpr int keys = 64;
    constexpr int limit = 1000;
    memory_under_test s(keys);
    s.define("a", {named("log", sliding_log(limit, 1h))}, start);
    const auto key = [](int i) {
        auto text = std::to_string(i);
        text.resize(200, 'x'); // the largest entry
        return chain{{"a", text}};
    };
    // All keys grow. Two stay small and keep the memory of small entries in use, so that not enough is left for every
    // large one.
    for (int call = 0; call < limit; ++call) {
        for (int i = call < 1 ? 0 : call < 20 ? 1 : 2; i < keys; ++i)
            CHECK(s.take(key(i), start + microseconds{call}).admitted);
    }
    CHECK(s.store.stats().merged_records > 0);
    CHECK(s.take(key(keys), start + 1ms).admitted); // on the overflow counters
    const auto old_rules = s.groups["a"];
    s.define("a", {named("log", sliding_log(limit - 1, 1h))}, start + 1ms);
    CHECK(s.store.stats().keys < keys); // some entries found no memory
    for (int i = 2; i <= keys; ++i)
        CHECK_FALSE(s.take(key(i), start + 1ms).admitted);
    CHECK(old_rules.use_count() == 1); // the store has released the old rules
    s.store.visit(0, [&](const key_table::entry& e, microseconds) { CHECK(e.group == s.groups["a"].get()); });
}

TEST_CASE("memory store: a clock that steps back counts as no time, and time is not counted twice")
{
    memory_under_test s;
    s.define("bucket", {named("b", token_bucket(1, 1s, 3))}, start);
    s.define("log", {named("l", sliding_log(3, 10s))}, start);
    s.define("fixed", {named("f", fixed_window(3, 10s))}, start);
    s.define("sliding", {named("s", sliding_window(3, 10s))}, start);
    for (const char* group : {"bucket", "log", "fixed", "sliding"}) {
        CAPTURE(std::string(group));
        const chain k{{group, "k", {}}};
        CHECK(s.takes(5, k, start) == 3);
        for (const auto back : {1us, microseconds{5s}, microseconds{24h * 400}})
            CHECK(s.takes(5, k, start - back) == 0);
        CHECK(s.takes(5, k, start) == 0);
    }
    CHECK(s.takes(5, {{"bucket", "k", {}}}, start + 1s) == 1);
}

TEST_CASE("property: the store decides like the reference, also when the clock steps back")
{
    for (const auto kind : every_algorithm) {
        const bool holds = rc::check(name_of(kind) + ": through the store", [&] {
            rule r = any_rule(kind);
            r.initial = r.capacity; // a recovered key is like a new key
            memory_under_test s;
            auto now = any_start(), latest = start; // the store's clock starts at its first request
            s.define("a", {r}, now);
            reference model(r, now);
            microseconds wait{0};
            for (const auto& step : any_schedule(30)) {
                now += step.act == 1 ? -pause_before(step, r, wait) : pause_before(step, r, wait);
                now = std::max(now, start);
                latest = std::max(latest, now);
                const auto expected_left = model.judge(latest, 0).remaining;
                const auto cost = headgate::testing::cost_of(step, r.limit(), expected_left);
                const auto expected = model.judge(latest, cost);
                const chain k{{"a", "k", {cost}}};
                const auto got = step.act == 0 ? s.look(k, now) : s.take(k, now);
                RC_ASSERT(got.decisions.at(0) == expected);
                RC_ASSERT(got.admitted == expected.admitted);
                RC_ASSERT(got.retry_after == expected.retry_after);
                wait = got.retry_after;
                if (got.admitted && step.act != 0)
                    model.charge(latest, cost);
            }
        });
        CHECK_MESSAGE(holds, name_of(kind));
    }
}
