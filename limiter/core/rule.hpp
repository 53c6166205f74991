// A rule: one limit, in the numbers the arithmetic needs. The words of gateway.yaml are turned into it by config/.
#pragma once

#include "limiter/core/time.hpp"
#include "limiter/core/time_zone.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace headgate::limiter {

enum class algorithm : std::uint8_t
{
    token_bucket,
    leaky_bucket,
    gcra,
    fixed_window,
    sliding_window,
    sliding_log,
    concurrency,
};

// When a fixed window begins: with its first call, or with the clock.
enum class window_align : std::uint8_t
{
    first,
    clock,
};

// Windows that follow the calendar instead of having a fixed length.
enum class calendar_unit : std::uint8_t
{
    none,
    day,
    week, // begins on Monday
    month,
};

// The largest count, burst or cost a rule may carry: exact in a double, as Redis's Lua has nothing else.
inline constexpr std::uint64_t max_count = std::uint64_t{1} << 53;
// What counters stop at, far above any limit: no run of settled costs wraps round to nothing.
inline constexpr std::uint64_t max_use = std::uint64_t{1} << 62;
// A sliding log keeps one record a call, so its limit is also its memory.
inline constexpr std::uint64_t max_log_records = 10'000;

struct rule
{
    std::string name;
    algorithm kind = algorithm::token_bucket;

    // `count` in every `period`; for concurrency, `count` in flight and no period.
    std::uint64_t count = 1;
    microseconds period{1'000'000};

    // Buckets: the most that passes at once, and what a key never seen starts with.
    // token_bucket says `burst` for capacity; leaky_bucket and gcra say `burst` for capacity - 1.
    std::uint64_t capacity = 1;
    std::uint64_t initial = 1;
    // leaky_bucket as a shaper: what goes beyond the first 1 + delay_after waits its turn instead of passing at once.
    std::optional<std::uint64_t> delay_after;

    // fixed_window
    window_align align = window_align::clock;
    calendar_unit calendar = calendar_unit::none;
    std::shared_ptr<const time_zone> zone; // null: UTC

    bool shadow = false;        // judged beside the others, never refuses
    bool unlimited = false;     // for this key it holds no longer: never refuses, but what was used stays known
    bool count_refused = false; // a refused request counts too

    bool is_bucket() const
    {
        return kind == algorithm::token_bucket || kind == algorithm::leaky_bucket || kind == algorithm::gcra;
    }
    // What a client sees as the limit: the most it can have at once.
    std::uint64_t limit() const { return is_bucket() ? capacity : count; }
};

} // namespace headgate::limiter
