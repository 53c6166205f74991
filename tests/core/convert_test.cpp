// A change of limits keeps what was used.
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

rule per_minute(algorithm kind, std::uint64_t n)
{
    return kind <= algorithm::gcra ? bucket_rule(kind, n, 60s, n) : window(kind, n, 60s);
}

bool same_family(algorithm a, algorithm b) { return a == b || (a <= algorithm::gcra && b <= algorithm::gcra); }

} // namespace

TEST_CASE("reload: with 80 used, raising 100 per minute to 200 leaves 120 and lowering to 50 leaves 0")
{
    for (const auto kind : every_algorithm) {
        CAPTURE(name_of(kind));
        single_key key(per_minute(kind, 100));
        CHECK(key.take(start, 80).admitted);
        CHECK(key.converted(per_minute(kind, 200), start).look(start).remaining == 120);
        const auto lowered = key.converted(per_minute(kind, 50), start);
        CHECK(lowered.look(start).remaining == 0);
        CHECK_FALSE(lowered.look(start, 1).admitted);
        CHECK(key.converted(per_minute(kind, 100), start).words == key.words);
    }
}

TEST_CASE("reload: after lowering, the wait is the wait of a full key under the new rule")
{
    single_key bucket(token_bucket(100, 60s, 100));
    bucket.take(start, 80);
    CHECK(bucket.converted(token_bucket(50, 60s, 50), start).look(start, 1).retry_after == 1200ms);
    single_key fixed(fixed_window(100, 60s));
    fixed.take(start + 20s, 80);
    CHECK(fixed.converted(fixed_window(50, 60s), start + 30s).look(start + 30s, 1).retry_after == 30s);
    single_key first(fixed_window(100, 60s, window_align::first));
    first.take(start + 20s, 80);
    const auto lowered = first.converted(fixed_window(50, 60s, window_align::first), start + 30s);
    CHECK(lowered.look(start + 30s, 1).retry_after == 50s);
    single_key log(sliding_log(100, 60s));
    for (int i = 0; i < 8; ++i)
        log.take(start + i * 1s, 10);
    const auto short_log = log.converted(sliding_log(45, 60s), start + 10s);
    // The log has the newest 45: 5 of the fourth request, and all later ones.
    CHECK(short_log.look(start + 10s, 5).retry_after == 53s);
    CHECK(short_log.look(start + 10s, 6).retry_after == 54s);
}

TEST_CASE("reload: lowering a sliding window gives out no quota, however far its previous window has faded")
{
    single_key key(sliding_window(100, 60s));
    key.take(start, 100);
    const auto now = start + 90s; // 50 of the 100 still count
    CHECK(key.look(now).remaining == 50);
    CHECK(key.converted(sliding_window(50, 60s), now).look(now).remaining == 0);
    CHECK(key.converted(sliding_window(60, 60s), now).look(now).remaining == 10);
}

TEST_CASE("reload: a change to another algorithm keeps the used share")
{
    for (const auto from : every_algorithm) {
        for (const auto to : every_algorithm) {
            if (same_family(from, to) || from == algorithm::concurrency || to == algorithm::concurrency)
                continue;
            CAPTURE(name_of(from));
            CAPTURE(name_of(to));
            single_key key(per_minute(from, 100));
            key.take(start, 80);
            CHECK(key.converted(per_minute(to, 1000), start).look(start).remaining == 200);
            CHECK(key.converted(per_minute(to, 10), start).look(start).remaining == 2);
            CHECK(key.converted(per_minute(to, 3), start).look(start).remaining == 0); // 2.4, rounded up
            CHECK(single_key(per_minute(from, 100)).converted(per_minute(to, 7), start).look(start).remaining == 7);
        }
    }
}

TEST_CASE("reload: requests in flight are not converted to tokens, and not forgotten")
{
    single_key key(concurrency(10));
    key.take(start, 8);
    CHECK(key.converted(concurrency(5), start).look(start).remaining == 0);
    CHECK(key.converted(concurrency(20), start).look(start).remaining == 12);
    CHECK(key.converted(token_bucket(1, 1s, 10), start).look(start).remaining == 10);
    auto slow = token_bucket(1, 1s, 10);
    slow.initial = 3;
    CHECK(key.converted(slow, start).look(start).remaining == 3);
    single_key bucket(token_bucket(1, 1s, 10));
    bucket.take(start, 8);
    CHECK(bucket.converted(concurrency(5), start).look(start).remaining == 5);
}

TEST_CASE("property: for every pair of algorithms a reload neither gives out quota nor loses any")
{
    for (const auto from : every_algorithm) {
        for (const auto to : every_algorithm) {
            const auto name = name_of(from) + " to " + name_of(to);
            const bool holds = rc::check(name, [&] {
                rule a = any_rule(from), b = any_rule(to);
                a.initial = a.capacity; // a key that starts below its capacity has used nothing
                b.initial = b.capacity;
                if (from == to && in_range(0, 3) == 0)
                    b.period = a.period, b.align = a.align;
                auto now = any_start();
                single_key key(a, now);
                for (const auto& s : any_schedule(12)) {
                    now += pause_before(s, a, 0us);
                    key.take(now, cost_of(s, a.limit(), key.look(now).remaining));
                }
                const auto after = key.converted(b, now);
                const auto before_left = key.look(now).remaining, left = after.look(now).remaining;
                RC_ASSERT(left <= b.limit());
                if (from == algorithm::concurrency || to == algorithm::concurrency) {
                    if (from != to)
                        RC_ASSERT(left == b.limit());
                    else
                        RC_ASSERT(left == b.limit() - std::min(b.limit(), a.limit() - before_left));
                    return;
                }
                // remaining = limit - ceil(used), so bounds are in whole tokens.
                const wide used = static_cast<wide>(a.limit() - before_left);
                const wide now_used = static_cast<wide>(b.limit() - left), limit = static_cast<wide>(b.limit());
                if (to == algorithm::sliding_log && from == to && b.period < a.period) {
                    RC_ASSERT(now_used <= std::min(used, limit)); // a shorter log holds the newest requests
                } else if (same_family(from, to)) {
                    RC_ASSERT(now_used == std::min(used, limit));
                } else {
                    const wide most = (used * limit + a.limit() - 1) / a.limit();
                    const wide least = used > 0 ? ((used - 1) * limit) / a.limit() : 0;
                    RC_ASSERT(now_used <= most);
                    RC_ASSERT(now_used >= least);
                    RC_ASSERT((used == 0) == (now_used == 0));
                }
                // It recovers no later than a full key under the new rule.
                single_key full(b, now);
                full.take(now, b.limit());
                RC_ASSERT(after.look(now).reset_after <= full.look(now).reset_after);
            });
            CHECK_MESSAGE(holds, name);
        }
    }
}
