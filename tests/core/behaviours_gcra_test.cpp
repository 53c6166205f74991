// Meters of the buckets: redis-cell's numbers, and shaping as nginx does it.
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

// Returns the five numbers of CL.THROTTLE.
std::vector<std::int64_t> throttle(single_key& key, time_point now, std::uint64_t quantity = 1)
{
    const auto d = key.take(now, quantity);
    return {d.admitted ? 0 : 1, static_cast<std::int64_t>(d.limit), static_cast<std::int64_t>(d.remaining),
            redis_cell_seconds(d.retry_after), redis_cell_seconds(d.reset_after)};
}
using five = std::vector<std::int64_t>;

} // namespace

TEST_CASE("redis-cell: tom:reply 14 30 60 1")
{
    single_key key(gcra(14, 30, 60s));
    CHECK(throttle(key, start) == five{0, 15, 14, -1, 2});
}

TEST_CASE("redis-cell: reply:tom 5 5 60 1, and again 3 s later")
{
    single_key key(gcra(5, 5, 60s));
    CHECK(throttle(key, start) == five{0, 6, 5, -1, 12});
    CHECK(throttle(key, start + 3s) == five{0, 6, 4, -1, 21});
}

TEST_CASE("redis-cell: user123 15 30 60 admits sixteen at once, and the 17th waits 2 s")
{
    single_key key(gcra(15, 30, 60s));
    CHECK(throttle(key, start) == five{0, 16, 15, -1, 2});
    for (int i = 2; i < 16; ++i)
        throttle(key, start);
    CHECK(throttle(key, start) == five{0, 16, 0, -1, 32});
    CHECK(throttle(key, start) == five{1, 16, 0, 2, 32});
}

TEST_CASE("redis-cell: a quantity above the burst is never admitted, even for a new key")
{
    single_key key(gcra(15, 30, 60s));
    CHECK(throttle(key, start, 17) == five{1, 16, 16, -1, 0});
}

TEST_CASE("redis-cell: k 0 1 2 admits one request every two seconds")
{
    single_key key(gcra(0, 1, 2s));
    CHECK(throttle(key, start) == five{0, 1, 0, -1, 2});
    CHECK(throttle(key, start) == five{1, 1, 0, 2, 2});
    CHECK(throttle(key, start + 2s) == five{0, 1, 0, -1, 2});
}

TEST_CASE("redis-cell: burst 4, 1 per second, a long series")
{
    struct row
    {
        microseconds t;
        std::uint64_t quantity;
        bool refused;
        std::uint64_t remaining;
        microseconds reset, retry;
    };
    const row rows[] = {
        {0s, 6, true, 5, 0s, never},      {0s, 1, false, 4, 1s, never},     {0s, 1, false, 3, 2s, never},
        {0s, 1, false, 2, 3s, never},     {0s, 1, false, 1, 4s, never},     {0s, 1, false, 0, 5s, never},
        {0s, 1, true, 0, 5s, 1s},         {3s, 1, false, 2, 3s, never},     {3100ms, 1, false, 1, 3900ms, never},
        {4s, 1, false, 1, 4s, never},     {8s, 1, false, 4, 1s, never},     {9500ms, 1, false, 4, 1s, never},
        {9500ms, 0, false, 4, 1s, never}, {9500ms, 2, false, 2, 3s, never}, {9500ms, 5, true, 2, 3s, 3s}};
    single_key key(gcra(4, 1, 1s));
    for (const auto& r : rows) {
        CAPTURE(r.t.count());
        CAPTURE(r.quantity);
        CHECK(key.take(start + r.t, r.quantity) == decision{!r.refused, 5, r.remaining, r.retry, r.reset, 0us});
    }
}

TEST_CASE("redis-cell: seconds are truncated, plus one when a millisecond or more is left over")
{
    CHECK(redis_cell_seconds(never) == -1);
    CHECK(redis_cell_seconds(0us) == 0);
    CHECK(redis_cell_seconds(999us) == 0);
    CHECK(redis_cell_seconds(1ms) == 1);
    CHECK(redis_cell_seconds(2s) == 2);
    CHECK(redis_cell_seconds(2s + 999us) == 2);
    CHECK(redis_cell_seconds(2s + 1ms) == 3);
}

TEST_CASE("gcra: rates that redis-cell rounds are exact: 1000 per minute, 8000 to ten million per second, 1 per month")
{
    struct row
    {
        std::uint64_t count;
        microseconds period;
    };
    for (const auto& r : {row{1000, 60s}, row{8000, 1s}, row{1'000'000, 1s}, row{10'000'000, 1s}, row{1, 720h}}) {
        CAPTURE(r.count);
        single_key key(gcra(r.count - 1, r.count, r.period));
        CHECK(key.take(start, r.count).admitted);
        CHECK_FALSE(key.take(start).admitted);
        // Exactly `count` tokens return per period, however often the key is used.
        std::uint64_t admitted = 0;
        for (int i = 1; i <= 1000; ++i) {
            const auto now = start + r.period * i / 1000;
            const auto left = key.look(now).remaining;
            CHECK(key.take(now, left).admitted);
            admitted += left;
        }
        CHECK(admitted == r.count);
    }
}

TEST_CASE("bucket: a burst of 2^31 fills and drains without overflow")
{
    const std::uint64_t burst = std::uint64_t{1} << 31;
    for (const auto period : {microseconds{1s}, microseconds{720h}}) {
        single_key key(token_bucket(1, period, burst));
        CHECK(key.take(start, burst).remaining == 0);
        CHECK(key.take(start).retry_after == period);
        CHECK(key.look(start).reset_after.count() > 0);
        CHECK(recovered_at(key.meter, key.words) > start);
    }
}

TEST_CASE("shaping: burst 5 admits 1 now, delays 5 by 1 to 5 s, refuses the 7th")
{
    auto r = leaky_bucket(1, 1s, 5);
    r.delay_after = 0;
    single_key key(r);
    for (int i = 0; i <= 5; ++i)
        CHECK(key.take(start).delay == i * 1s);
    CHECK_FALSE(key.take(start).admitted);
}

TEST_CASE("shaping: burst 5 nodelay admits 6 now and refuses the 7th")
{
    single_key key(leaky_bucket(1, 1s, 5));
    for (int i = 0; i <= 5; ++i)
        CHECK(key.take(start) == decision{true, 6, static_cast<std::uint64_t>(5 - i), never, (i + 1) * 1s, 0us});
    CHECK_FALSE(key.take(start).admitted);
}

TEST_CASE("shaping: burst 5 delay 3 admits 4 now, delays two by 1 s and 2 s, and refuses the 7th")
{
    auto r = leaky_bucket(1, 1s, 5);
    r.delay_after = 3;
    single_key key(r);
    for (const auto delay : {0s, 0s, 0s, 0s, 1s, 2s})
        CHECK(key.take(start).delay == delay);
    const auto refused = key.take(start);
    CHECK_FALSE(refused.admitted);
    CHECK(refused.delay == 0s);
    CHECK(key.look(start).delay == 0s); // looking is never delayed
}

TEST_CASE("shaping: 10 per second, burst 20 nodelay admits 21 of 25 at once")
{
    single_key key(leaky_bucket(10, 1s, 20));
    CHECK(key.takes(25, start) == 21);
}

TEST_CASE("shaping: giving back a delayed request shortens the delay of the next")
{
    auto r = leaky_bucket(1, 1s, 5);
    r.delay_after = 0;
    single_key key(r);
    key.takes(3, start);
    CHECK(key.look(start, 1).delay == 3s);
    CHECK(key.give_back(start, start) == 1);
    CHECK(key.take(start).delay == 2s);
}
