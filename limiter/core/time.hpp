// Time in the limiter: whole microseconds since the Unix epoch. Always an argument: limiter/core never reads a clock.
#pragma once

#include <chrono>

namespace headgate::limiter {

using microseconds = std::chrono::microseconds;
using time_point = std::chrono::sys_time<microseconds>;

// The time of a decision, and how far the wall clock is ahead of it. The memory store's time is steady, so the two
// differ once the wall clock has stepped. Only windows that follow the clock or the calendar use the second number.
struct moment
{
    time_point time{};
    microseconds wall_ahead{0};

    constexpr moment() = default;
    constexpr moment(time_point t, microseconds ahead = microseconds{0}) : time(t), wall_ahead(ahead) {}
    constexpr operator time_point() const { return time; }
    constexpr time_point wall() const { return time + wall_ahead; }
};

} // namespace headgate::limiter
