// The clocks: one for all that is measured here, and any of the kernel's in nanoseconds.
#pragma once

#include <chrono>
#include <ctime>

namespace load {

using clock = std::chrono::steady_clock;

inline std::chrono::nanoseconds in_nanoseconds(const timespec& time)
{
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

inline std::chrono::nanoseconds read_clock(clockid_t which)
{
    timespec now{};
    ::clock_gettime(which, &now);
    return in_nanoseconds(now);
}

} // namespace load
