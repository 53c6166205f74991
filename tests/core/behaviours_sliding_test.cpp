// The sliding window of two counters.
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

// Makes a key with these two counters; `start` is the start of a minute.
single_key with_counters(std::uint64_t previous, std::uint64_t current)
{
    single_key key(sliding_window(100, 60s));
    charge(key.meter, key.words, start - 30s, previous);
    charge(key.meter, key.words, start + 1s, current);
    return key;
}

} // namespace

TEST_CASE("sliding window: limit 100, previous 86, current 12, 15 s in: the estimate is 76.5")
{
    const auto key = with_counters(86, 12);
    CHECK(key.look(start + 15s).remaining == 23); // 100 - 76.5, rounded down
    CHECK(key.look(start + 15s, 23).admitted);
    CHECK_FALSE(key.look(start + 15s, 24).admitted);
}

TEST_CASE("sliding window: the cost is added before it is compared")
{
    auto key = with_counters(0, 99);
    CHECK(key.take(start + 15s).admitted);
    CHECK_FALSE(key.take(start + 15s).admitted);
}

TEST_CASE("sliding window: limit 100, previous 100, current 50, 15 s in: the wait is 15 s")
{
    // The current 50 includes the cost: 49 requests came before the refused one. A cost of 0 with a current 50 gives
    // the same: the estimate is 125 and falls to 100 at 30 s.
    CHECK(with_counters(100, 49).look(start + 15s, 1).retry_after == 15s);
    CHECK(with_counters(100, 50).look(start + 15s, 0).retry_after == 15s);
    CHECK(with_counters(100, 49).look(start + 30s, 1).admitted);
    CHECK_FALSE(with_counters(100, 49).look(start + 30s - 1us, 1).admitted);
}

TEST_CASE("sliding window: a full window still counts in the next one")
{
    const auto key = with_counters(0, 100);
    const auto decided = key.look(start + 15s, 1);
    CHECK(decided.retry_after == 45s + 600ms); // one hundredth into the next window
    CHECK(key.look(start + 15s + decided.retry_after, 1).admitted);
    CHECK(decided.reset_after == 105s);
    CHECK(key.look(start + 60s, 100).retry_after == 60s);
    CHECK(key.look(start + 15s, 101).retry_after == never);
}

TEST_CASE("sliding window: after two windows without requests nothing is counted")
{
    const auto key = with_counters(100, 100);
    CHECK(key.look(start + 60s + 30s).remaining == 50);
    CHECK(key.look(start + 120s).remaining == 100);
    CHECK(key.look(start + 120s).reset_after == 0s);
    CHECK(key.look(start + 1200s).remaining == 100);
    CHECK(recovered_at(key.meter, key.words) == start + 120s);
}

TEST_CASE("sliding window: a clock that steps back into the previous window counts as no time")
{
    auto key = with_counters(0, 60);
    CHECK(key.look(start - 30s).remaining == 40);
    CHECK(key.take(start - 30s, 40).admitted);
    CHECK_FALSE(key.take(start - 30s).admitted);
    CHECK(key.look(start + 1s).remaining == 0);
}
