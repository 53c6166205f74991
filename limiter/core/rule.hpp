// A rule: one limit, as numbers. config/ reads these numbers from gateway.yaml.
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

// When a fixed window begins: at the first request, or at a multiple of its period on the clock.
enum class window_align : std::uint8_t
{
    first,
    clock,
};

// Windows that follow the calendar instead of a fixed length.
enum class calendar_unit : std::uint8_t
{
    none,
    day,
    week, // begins on Monday
    month,
};

// The largest count, burst or cost: exact in a double, the only number type of Redis's Lua.
inline constexpr std::uint64_t max_count = std::uint64_t{1} << 53;
// The largest value of a counter, far above any limit, so that no series of corrections overflows.
inline constexpr std::uint64_t max_use = std::uint64_t{1} << 62;
// A sliding log keeps one record per request, so its limit bounds its memory.
inline constexpr std::uint64_t max_log_records = 10'000;

struct rule
{
    std::string name;
    algorithm kind = algorithm::token_bucket;

    // `count` per `period`; for concurrency, `count` in flight and no period.
    std::uint64_t count = 1;
    microseconds period{1'000'000};

    // Buckets: the most that is admitted at once, and what a new key starts with. token_bucket calls the capacity
    // `burst`; leaky_bucket and gcra call capacity - 1 `burst`.
    std::uint64_t capacity = 1;
    std::uint64_t initial = 1;
    // leaky_bucket with shaping: requests beyond the first 1 + delay_after are delayed.
    std::optional<std::uint64_t> delay_after;

    // fixed_window
    window_align align = window_align::clock;
    calendar_unit calendar = calendar_unit::none;
    std::shared_ptr<const time_zone> zone; // null: UTC

    bool shadow = false;        // judged with the others, never refuses
    bool unlimited = false;     // never refuses, but keeps its counters
    bool count_refused = false; // refused requests are charged too

    bool is_bucket() const
    {
        return kind == algorithm::token_bucket || kind == algorithm::leaky_bucket || kind == algorithm::gcra;
    }
    // Returns whether its windows begin by the wall clock, and so move when that steps.
    bool follows_wall_clock() const { return kind == algorithm::fixed_window && align == window_align::clock; }
    // Returns the limit that clients see: the most that is admitted at once.
    std::uint64_t limit() const { return is_bucket() ? capacity : count; }
};

} // namespace headgate::limiter
