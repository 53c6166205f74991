// Every algorithm compared with the reference, over random rules and schedules. rapidcheck prints the seed of a
// failure; RC_PARAMS="seed=... max_success=..." repeats or extends a run.
#include "limiter/core/settled.hpp"
#include "tests/support/reference.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace headgate::testing;

namespace {

std::string text(const rule& r)
{
    std::ostringstream out;
    showValue(r, out);
    return out.str();
}

// Runs `property` for every algorithm and reports the algorithm that fails.
template <class Property>
void for_every_algorithm(const char* what, Property property)
{
    for (const auto kind : every_algorithm) {
        const bool holds = rc::check(name_of(kind) + ": " + what, [&] { property(kind); });
        CHECK_MESSAGE(holds, (name_of(kind) + ": " + what));
    }
}

// Drives one key through a schedule and calls see(now, cost, step) at every step. `see` decides whether to take.
template <class See>
void drive(single_key& key, time_point now, const std::vector<step>& schedule, See see)
{
    microseconds wait{0};
    for (const auto& s : schedule) {
        now += pause_before(s, key.meter.limits, wait);
        const auto cost = cost_of(s, key.meter.limits.limit(), key.look(now).remaining);
        wait = key.look(now, cost).retry_after;
        see(now, cost, s);
    }
}

} // namespace

TEST_CASE("property: every decision equals that of the reference")
{
    for_every_algorithm("same answers as the definition", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        reference model(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            const auto expected = model.judge(now, cost);
            const auto decided = key.look(now, cost);
            if (decided != expected) {
                std::ostringstream out;
                out << text(r) << "\ncost " << cost << " decided  " << decided << "\nexpected " << expected;
                RC_FAIL(out.str());
            }
            if (s.act == 0 || !decided.admitted)
                return; // only looked
            key.take(now, cost);
            model.charge(now, cost);
        });
    });
}

TEST_CASE("property: no interval holds more than the rule allows")
{
    for_every_algorithm("admitted at most what is allowed", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        std::vector<reference::call> admitted;
        drive(key, first, any_schedule(60), [&](time_point now, std::uint64_t cost, const step&) {
            if (key.take(now, cost).admitted)
                admitted.push_back({now.time_since_epoch().count(), static_cast<wide>(cost)});
        });
        const wide period = r.period.count();
        for (std::size_t i = 0; i < admitted.size(); ++i) {
            wide sum = 0;
            for (std::size_t j = i; j < admitted.size(); ++j) {
                sum += admitted[j].cost;
                const wide from = admitted[i].at, to = admitted[j].at;
                if (r.is_bucket())
                    RC_ASSERT(sum * period <= static_cast<wide>(r.capacity) * period + (to - from) * r.count);
                else if (kind == algorithm::concurrency)
                    RC_ASSERT(sum <= static_cast<wide>(r.count));
                else if (kind == algorithm::sliding_log && to - from < period)
                    RC_ASSERT(sum <= static_cast<wide>(r.count));
                else if (kind == algorithm::sliding_window && from / period == to / period)
                    RC_ASSERT(sum <= static_cast<wide>(r.count));
                else if (kind == algorithm::fixed_window && r.align == window_align::clock &&
                         from / period == to / period)
                    RC_ASSERT(sum <= static_cast<wide>(r.count));
                else if (kind == algorithm::fixed_window && to - from < period)
                    RC_ASSERT(sum <= 2 * static_cast<wide>(r.count)); // the interval may overlap two windows
            }
        }
    });
}

TEST_CASE("property: exactly the remaining cost is admitted at once")
{
    for_every_algorithm("remaining is exact", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step&) {
            const auto decided = key.take(now, cost);
            RC_ASSERT(decided.remaining <= r.limit());
            RC_ASSERT(key.look(now, decided.remaining).admitted);
            RC_ASSERT(!key.look(now, decided.remaining + 1).admitted);
            RC_ASSERT(key.look(now).remaining == decided.remaining);
        });
    });
}

TEST_CASE("property: waiting exactly retry_after admits, a microsecond less does not")
{
    for_every_algorithm("retry_after is exact", [](algorithm kind) {
        if (kind == algorithm::concurrency)
            return;
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step&) {
            const auto decided = key.take(now, cost);
            if (decided.admitted || cost > r.limit()) {
                RC_ASSERT(decided.retry_after == never);
                return;
            }
            RC_ASSERT(decided.retry_after.count() > 0);
            if (decided.retry_after.count() > std::int64_t{1} << 60)
                return; // beyond the largest time
            RC_ASSERT(key.look(now + decided.retry_after, cost).admitted);
            RC_ASSERT(!key.look(now + decided.retry_after - microseconds{1}, cost).admitted);
        });
    });
}

TEST_CASE("property: exactly after reset_after the key is like a new key")
{
    for_every_algorithm("reset_after is exact", [](algorithm kind) {
        if (kind == algorithm::concurrency)
            return;
        rule r = any_rule(kind);
        r.initial = r.capacity;
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step&) {
            const auto decided = key.take(now, cost);
            const auto recovered = recovered_at(key.meter, key.words);
            RC_ASSERT((recovered <= now) == (decided.reset_after.count() == 0));
            if (decided.reset_after.count() == 0 || decided.reset_after.count() > std::int64_t{1} << 60)
                return;
            RC_ASSERT(recovered == now + decided.reset_after);
            const single_key fresh(r, recovered);
            RC_ASSERT(key.look(recovered, 1) == fresh.look(recovered, 1));
            RC_ASSERT(key.look(recovered, r.limit()).admitted);
            RC_ASSERT(key.look(recovered - microseconds{1}).reset_after == microseconds{1});
        });
    });
}

TEST_CASE("property: looking and refused requests change nothing")
{
    for_every_algorithm("a refusal changes nothing", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first), undisturbed(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            const auto before = key.words;
            if (s.act < 5 || !key.look(now, cost).admitted) {
                key.look(now, cost);
                RC_ASSERT(key.words == before);
                return;
            }
            key.take(now, cost);
            undisturbed.take(now, cost);
            RC_ASSERT(key.words == undisturbed.words);
        });
    });
}

TEST_CASE("property: giving a charge back restores the state, and never exceeds the limit")
{
    for_every_algorithm("take, give back = nothing", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first), never_took(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            const bool admitted = key.take(now, cost).admitted;
            if (!admitted)
                return;
            if (s.act < 5) {
                never_took.take(now, cost);
                return;
            }
            RC_ASSERT(key.give_back(now, now, cost) == cost);
            RC_ASSERT(key.look(now) == never_took.look(now));
            RC_ASSERT(key.look(now, r.limit()) == never_took.look(now, r.limit()));
        });
        const auto after = first + microseconds{1};
        single_key full(r, after);
        full.give_back(after, after, UINT64_MAX);
        RC_ASSERT(full.look(after).remaining == r.limit());
        full.take(after);
        RC_ASSERT(full.give_back(after, after, UINT64_MAX) == 1u);
        RC_ASSERT(recovered_at(full.meter, full.words) <= after);
        RC_ASSERT(full.give_back(after, after, 5) == 0u);
        RC_ASSERT(full.look(after).remaining == r.limit());
    });
}

TEST_CASE("property: a decision that is settled to another cost says what the key says after that charge")
{
    for_every_algorithm("settled = charged so at once", [](algorithm kind) {
        if (kind == algorithm::concurrency)
            return;
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            auto otherwise = key;
            const auto decided = key.take(now, cost);
            if (!decided.admitted)
                return;
            const auto actual = std::min(cost_of(s, r.limit(), decided.remaining), max_count - 3) + s.pace_by % 3;
            charge(otherwise.meter, otherwise.words, now, actual);
            const auto expected = otherwise.look(now);
            const auto said = settled(key.meter, decided, now, cost, actual);
            RC_ASSERT(said.admitted);
            RC_ASSERT(said.limit == decided.limit);
            RC_ASSERT(said.remaining == expected.remaining);
            if (std::max(expected.reset_after, decided.reset_after).count() > std::int64_t{1} << 60)
                return; // beyond the largest time
            if (r.is_bucket()) {
                RC_ASSERT(said.reset_after <= expected.reset_after);
                RC_ASSERT(said.reset_after + microseconds{1} >= expected.reset_after);
            } else if (actual > 0) {
                RC_ASSERT(said.reset_after == expected.reset_after);
            } else {
                RC_ASSERT(said.reset_after >= expected.reset_after);
                RC_ASSERT(said.reset_after <= decided.reset_after);
            }
        });
    });
}

TEST_CASE("property: a refund frees the amount it returns, at most what is used")
{
    for_every_algorithm("given back = more remaining", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            if (s.act > 4) {
                key.take(now, cost);
                return;
            }
            const auto before = key.look(now).remaining;
            const auto given = key.give_back(now, now, cost);
            const auto after = key.look(now).remaining;
            RC_ASSERT(given <= cost);
            RC_ASSERT(after <= r.limit());
            RC_ASSERT(after - before == given);
        });
    });
}

TEST_CASE("property: a charged refusal fills the rule at most to its limit, and never makes room")
{
    for_every_algorithm("count_refused", [](algorithm kind) {
        const rule r = any_rule(kind);
        const auto first = any_start();
        single_key key(r, first);
        drive(key, first, any_schedule(), [&](time_point now, std::uint64_t cost, const step& s) {
            if (s.act == 9)
                charge(key.meter, key.words, now, cost % (2 * r.limit())); // a corrected cost may exceed the limit
            if (key.take(now, cost).admitted)
                return;
            const auto before = key.look(now, 1);
            key.refuse(now, cost);
            const auto after = key.look(now, 1);
            RC_ASSERT(after.remaining <= before.remaining);
            RC_ASSERT(after.reset_after >= before.reset_after);
            if (kind != algorithm::concurrency && kind != algorithm::sliding_window)
                RC_ASSERT(key.look(now).remaining == 0u);
            if (!before.admitted && before.retry_after != never)
                RC_ASSERT(after.retry_after >= before.retry_after);
        });
    });
}
