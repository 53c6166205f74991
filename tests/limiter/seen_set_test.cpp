#include "limiter/memory/seen_set.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <random>

using namespace headgate::limiter;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{std::chrono::hours{24 * 365 * 56}};

} // namespace

TEST_CASE("seen set: a hash is seen for exactly one period after it was last seen")
{
    seen_set set(100);
    CHECK(!set.refresh(7, start, 10s));
    CHECK(!set.mark(7, start, 10s));
    CHECK(set.mark(7, start, 10s));
    CHECK(set.refresh(7, start + 10s, 10s)); // and marked again
    CHECK(set.refresh(7, start + 20s, 10s));
    CHECK(!set.refresh(7, start + 30s + 1us, 10s));
    CHECK(!set.refresh(7, start + 30s, 9s)); // nor by asking in vain
    CHECK(!set.mark(7, start + 40s, 10s));
    CHECK(set.refresh(7, start + 41s, 10s));
    CHECK(!set.refresh(8, start + 41s, 10s));
    CHECK(!set.refresh(0, start, 10s)); // the bits of an empty slot
    CHECK(!set.mark(0, start, 10s));
    CHECK(set.refresh(0, start, 10s));
}

TEST_CASE("seen set: what was seen before the clock was set back is seen, for one period from now")
{
    seen_set set(100);
    set.mark(7, start + 240h, 10s);
    CHECK(set.refresh(7, start, 10s));
    CHECK(!set.refresh(7, start + 10s + 1us, 10s));
}

TEST_CASE("seen set: it never says seen for a hash that was not marked within the period, also when it is full")
{
    rc::check([] {
        const auto most = *rc::gen::inRange<std::size_t>(1, 60);
        const auto hashes = *rc::gen::inRange<std::uint64_t>(1, 300);
        std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
        seen_set set(most);
        std::map<std::uint64_t, time_point> last; // when a hash was marked, or seen, for the last time
        auto now = start;
        constexpr auto period = 1000us;
        for (int step = 0; step < 2000; ++step) {
            now += microseconds{random() % 20};
            // Few different values in each half, so that buckets are shared.
            const auto hash = (random() % hashes) * 0x9e3779b97f4a7c15u;
            const bool may_be_seen = last.contains(hash) && now - last[hash] <= period;
            const bool marks = random() % 2 == 0;
            const bool is_seen = marks ? set.mark(hash, now, period) : set.refresh(hash, now, period);
            RC_ASSERT(!is_seen || may_be_seen);
            if (marks || is_seen)
                last[hash] = now;
        }
    });
}

TEST_CASE("seen set: it forgets nothing while it holds no more than it has room for")
{
    for (const std::size_t most : {1U, 5U, 100U, 100'000U}) {
        CAPTURE(most);
        seen_set set(most);
        std::mt19937_64 random(most);
        std::vector<std::uint64_t> hashes(most);
        for (auto& each : hashes) {
            each = random();
            set.mark(each, start, 1h);
        }
        std::size_t seen = 0;
        for (const auto each : hashes)
            seen += set.refresh(each, start + 1h, 1h);
        CHECK(seen == most);
        CHECK(set.forgotten() == 0);
    }
}

TEST_CASE("seen set: a flood of hashes that come once does not make it forget those that come often")
{
    constexpr std::size_t regulars = 500;
    seen_set set(1000);
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> hashes(regulars);
    auto now = start;
    for (auto& each : hashes) {
        each = random();
        set.mark(each, now, 1h);
    }
    std::size_t forgotten = 0;
    for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 500; ++i)
            set.mark(random(), now += 1us, 1h);
        for (const auto each : hashes)
            forgotten += !set.mark(each, now += 1us, 1h);
    }
    CHECK(set.forgotten() > 40'000); // most of the 50,000 have replaced others
    CHECK(forgotten < 100 * regulars / 100);
}
