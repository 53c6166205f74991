// A clock that was ahead, and then is not: what was used stays used, and recovers as fast as the rule allows.
#include "tests/support/reference.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>

using namespace headgate::testing;

namespace {

constexpr auto ahead = 24h * 10;

rule calendar(calendar_unit unit, std::uint64_t count)
{
    auto r = named("calendar", fixed_window(count, 24h));
    r.calendar = unit;
    return r;
}

// Uses the key up at `written`, and takes its state as if it had been written at `now`.
single_key rewound(const rule& r, time_point written, moment now)
{
    single_key key(r, written);
    CHECK(key.take(written, r.limit()).admitted);
    rewind(key.meter, key.words, written, now);
    return key;
}

microseconds wait_of(const single_key& key, time_point now) { return key.look(now, 1).retry_after; }

} // namespace

TEST_CASE("clock steps: a state from ten days ahead waits as long as the rule needs, no longer")
{
    CHECK(wait_of(rewound(token_bucket(60, 60s, 60), start + ahead, start), start) == 1s);
    CHECK(wait_of(rewound(leaky_bucket(1, 10s, 0), start + ahead, start), start) == 10s);
    CHECK(wait_of(rewound(fixed_window(10, 60s), start + ahead + 20s, start + 50s), start + 50s) == 10s);
    CHECK(wait_of(rewound(fixed_window(10, 60s, window_align::first), start + ahead, start), start) == 60s);
    CHECK(wait_of(rewound(sliding_log(10, 60s), start + ahead, start), start) == 60s);
    // A full window fades from its end on: one of ten after a tenth of the next one.
    CHECK(wait_of(rewound(sliding_window(10, 60s), start + ahead + 20s, start + 50s), start + 50s) == 46s);
}

TEST_CASE("clock steps: what was used in a later window of the calendar counts in the one that now runs")
{
    const time_point noon{std::chrono::sys_days{std::chrono::year{2025} / 3 / 12} + 12h}; // a Wednesday
    CHECK(wait_of(rewound(calendar(calendar_unit::day, 5), noon + 24h * 3, noon), noon) == 12h);
    CHECK(wait_of(rewound(calendar(calendar_unit::week, 5), noon + 24h * 7, noon), noon) == 24h * 4 + 12h);
    CHECK(wait_of(rewound(calendar(calendar_unit::month, 5), noon + 24h * 90, noon), noon) == 24h * 19 + 12h);
    // In the same window nothing changes.
    CHECK(wait_of(rewound(calendar(calendar_unit::day, 5), noon + 6h, noon), noon) == 12h);
    // What had recovered stays so.
    single_key hour(fixed_window(5, 1h), start);
    hour.take(start + 50min, 5);
    rewind(hour.meter, hour.words, start + 65min, start + 55min);
    CHECK(hour.look(start + 55min).remaining == 5);
}

TEST_CASE("clock steps: debts stay owed, and time before the step is not counted again")
{
    single_key key(token_bucket(1, 1s, 10), start + ahead);
    charge(key.meter, key.words, start + ahead, 100);
    rewind(key.meter, key.words, start + ahead, start);
    CHECK(wait_of(key, start) == 91s);
    rewind(key.meter, key.words, start, start); // not in the future
    CHECK(wait_of(key, start) == 91s);
    CHECK(wait_of(key, start + 1s) == 90s);
    // Near the epoch, where a machine without a clock begins.
    CHECK(wait_of(rewound(sliding_log(10, 60s), start, time_point{1s}), time_point{1s}) <= 60s);
    CHECK(wait_of(rewound(sliding_window(10, 60s), start, time_point{1s}), time_point{1s}) <= 120s);
}

TEST_CASE("clock steps: while the time is steady, only windows of the calendar follow the wall clock")
{
    const auto after_step = [](const rule& r, microseconds used_at, microseconds step) {
        single_key key(r, start);
        CHECK(key.take(start + used_at, r.limit()).admitted);
        follow_wall(key.meter, key.words, 0s, {start + used_at, step});
        return judge(key.meter, key.words, {start + used_at, step}, 1).retry_after;
    };
    CHECK(after_step(fixed_window(5, 1h), 10min, -30min) == 20min); // 40 minutes past, in the hour before
    CHECK(after_step(fixed_window(5, 1h), 10min, 20min) == 30min);  // half past
    CHECK(after_step(fixed_window(5, 1h), 10min, 50min) == never);  // the next hour
    CHECK(after_step(fixed_window(5, 1h, window_align::first), 10min, 50min) == 1h);
    CHECK(after_step(token_bucket(1, 10s, 1), 10min, 50min) == 10s);
    CHECK(after_step(sliding_log(1, 1h), 10min, -24h) == 1h);
    // The next window begins by the new wall clock; a charge of before the step is given back by the old one.
    single_key key(fixed_window(5, 1h), start);
    const moment at{start + 10min, 50min};
    charge(key.meter, key.words, at, 5);
    CHECK(judge(key.meter, key.words, at, 1).retry_after == 1h);
    CHECK(give_back(key.meter, key.words, {start + 9min, 0s}, at, 5) == 0);
    CHECK(give_back(key.meter, key.words, {start + 10min, 50min}, at, 5) == 5);
}

TEST_CASE("property: with a clock that steps, every decision equals that of the reference")
{
    for (const auto kind : every_algorithm) {
        const bool holds = rc::check(name_of(kind) + ": same answers, also after steps", [&] {
            rule r = any_rule(kind);
            if (kind == algorithm::fixed_window && in_range(0, 2) == 0) {
                r.align = window_align::clock;
                r.calendar = *rc::gen::element(calendar_unit::day, calendar_unit::week, calendar_unit::month);
            }
            auto now = any_start();
            single_key key(r, now);
            reference model(r, now);
            microseconds wait{0};
            for (const auto& s : any_schedule()) {
                now += pause_before(s, r, wait);
                if (s.act < 3) {
                    const auto before = key.look(now);
                    const auto wait_before = key.look(now, r.limit()).retry_after;
                    const auto to = now - clock_step(s, r);
                    rewind(key.meter, key.words, now, to);
                    model.rewind(now, to);
                    now = to;
                    if (!r.follows_wall_clock()) {
                        RC_ASSERT(key.look(now) == before);
                        RC_ASSERT(key.look(now, r.limit()).retry_after == wait_before);
                    }
                }
                const auto cost = headgate::testing::cost_of(s, r.limit(), key.look(now).remaining);
                const auto expected = model.judge(now, cost), decided = key.look(now, cost);
                if (decided != expected) {
                    std::ostringstream out;
                    showValue(r, out);
                    out << "\ncost " << cost << " decided  " << decided << "\nexpected " << expected;
                    RC_FAIL(out.str());
                }
                wait = decided.retry_after;
                if (!decided.admitted || cost == 0)
                    continue;
                key.take(now, cost);
                model.charge(now, cost);
            }
        });
        CHECK_MESSAGE(holds, name_of(kind));
    }
}
