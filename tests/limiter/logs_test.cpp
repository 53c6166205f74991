// Sliding logs in the memory store: they grow with their calls, and merge when there is no memory to grow into.
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

TEST_CASE("sliding log in the store: growing forgives a neighbour nothing it has overdrawn")
{
    memory_under_test s;
    s.define("a", {named("bytes", token_bucket(1, 1s, 10)), named("log", sliding_log(100, 1h))}, start);
    for (int i = 0; i < 4; ++i)
        CHECK(s.take({{"a", "k", {0, 1}}}, start + microseconds{i}).admitted);
    reservation id = 0;
    CHECK(s.reserve({{"a", "k", {1, 0}}}, start + 4us, 1h, id).admitted);
    CHECK(s.settle(id, {110, 5}, start + 5us)); // the log has to grow for this
    CHECK(s.take({{"a", "k"}}, start + 5us).decisions[0].retry_after > 100s);
}

TEST_CASE("sliding log in the store: blocked while it grows, it stays blocked and keeps its calls")
{
    memory_under_test s;
    s.define("a", {named("log", sliding_log(100, 1h))}, start);
    s.takes(3, {{"a", "k"}}, start);
    CHECK(s.block("a", "k", start + 10s, start));
    reservation id = 0;
    CHECK_FALSE(s.reserve({{"a", "k"}}, start, 1h, id).admitted);
    CHECK(s.unblock("a", "k", start + 1s));
    for (int i = 0; i < 20; ++i)
        CHECK(s.take({{"a", "k"}}, start + 1s + microseconds{i}).admitted);
    CHECK(s.inspect("a", "k", start + 2s)->decisions[0].remaining == 77);
}

TEST_CASE("sliding log in the store: a longer limit after a reload grows on from where it was")
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

TEST_CASE("sliding log in the store: a reload without memory forgives nobody, and leaves no entry of the old rules")
{
    constexpr int keys = 64;
    constexpr int limit = 1000;
    memory_under_test s(keys);
    s.define("a", {named("log", sliding_log(limit, 1h))}, start);
    const auto key = [](int i) {
        auto text = std::to_string(i);
        text.resize(200, 'x'); // as large as an entry gets
        return chain{{"a", text}};
    };
    // All grow side by side. Two stay small and keep the memory of small entries in use, so that there is not enough
    // left for every large one.
    for (int call = 0; call < limit; ++call) {
        for (int i = call < 1 ? 0 : call < 20 ? 1 : 2; i < keys; ++i)
            CHECK(s.take(key(i), start + microseconds{call}).admitted);
    }
    CHECK(s.store.stats().merged_records > 0);
    CHECK(s.take(key(keys), start + 1ms).admitted); // on the shared counters
    const auto old_rules = s.groups["a"];
    s.define("a", {named("log", sliding_log(limit - 1, 1h))}, start + 1ms);
    CHECK(s.store.stats().keys < keys); // it did run out
    for (int i = 2; i <= keys; ++i)
        CHECK_FALSE(s.take(key(i), start + 1ms).admitted);
    CHECK(old_rules.use_count() == 1); // nothing in the store needs them any more
    s.store.visit(0, [&](const key_table::entry& e) { CHECK(e.group == s.groups["a"].get()); });
}

TEST_CASE("property: the store answers as the reference does, also when its clock steps back")
{
    for (const auto kind : every_algorithm) {
        const bool holds = rc::check(name_of(kind) + ": through the store", [&] {
            rule r = any_rule(kind);
            r.initial = r.capacity; // a key that has recovered is one never seen
            memory_under_test s;
            auto now = any_start(), latest = start; // the store knows no time before its first call
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
                const auto said = step.act == 0 ? s.look(k, now) : s.take(k, now);
                RC_ASSERT(said.decisions.at(0) == expected);
                RC_ASSERT(said.admitted == expected.admitted);
                RC_ASSERT(said.retry_after == expected.retry_after);
                wait = said.retry_after;
                if (said.admitted && step.act != 0)
                    model.charge(latest, cost);
            }
        });
        CHECK_MESSAGE(holds, name_of(kind));
    }
}
