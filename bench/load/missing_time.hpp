// Time of some cores that nobody is seen to get.
//
// Some processes together never leave their cores idle: the proxy with one that only spins while it sleeps, the load
// with the origin. What their cores had in time and none of them got, somebody else took: another process, or the host,
// where it tells (a guest's kernel then leaves it out of the CPU time of whoever ran). That does not depend on what the
// proxy does. Where the host does not tell, the load sees that it stood still while it had nothing to do; what the
// proxy's core meets of that nobody sees, because only one who is idle could.
//
// Kernel threads count as somebody else. Where the kernel keeps its interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING), all
// that the network does counts as well, and no moment is calm.
#pragma once

#include "bench/load/read_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace load {

class missing_time
{
public:
    // Who has nothing to do and needs so long for it stood still; the kernel's tick takes up to half of that.
    static constexpr std::chrono::nanoseconds longer_than_a_tick = std::chrono::microseconds(100);

    missing_time(std::size_t cores, const std::vector<int>& filling) : cores_(static_cast<std::int64_t>(cores))
    {
        for (const auto process : filling) {
            clockid_t its{};
            if (::clock_getcpuclockid(process, &its) != 0)
                throw std::runtime_error("there is no process " + std::to_string(process));
            clocks_.push_back(its);
        }
    }

    // All of it until now; only differences mean anything.
    std::chrono::nanoseconds read()
    {
        not_ours_ = time_not_ours();
        auto missing = read_clock(CLOCK_MONOTONIC) * cores_ + stood_still_;
        for (const auto its : clocks_)
            missing -= read_clock(its);
        return missing;
    }
    // The caller, one thread that never sleeps, had nothing to do and needed so long for it. What was told of that is
    // missing already.
    void idled(std::chrono::nanoseconds how_long)
    {
        if (how_long <= longer_than_a_tick)
            return;
        const auto told = time_not_ours() - not_ours_; // since the last look, which is longer than that
        stood_still_ += std::max(std::chrono::nanoseconds(0), how_long - told);
    }

private:
    static std::chrono::nanoseconds time_not_ours()
    {
        return read_clock(CLOCK_MONOTONIC) - read_clock(CLOCK_PROCESS_CPUTIME_ID);
    }

    std::int64_t cores_;
    std::vector<clockid_t> clocks_;
    std::chrono::nanoseconds not_ours_ = time_not_ours();
    std::chrono::nanoseconds stood_still_{0};
};

} // namespace load
