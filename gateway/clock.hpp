// The gateway's time. It is steady, so that a step of the wall clock neither refuses nor admits all clients (L3). It is
// counted from the epoch, beginning with the wall clock of the start; wall_ahead() is what the wall clock has stepped
// since, for what follows the calendar.
#pragma once

#include "limiter/core/time.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headgate {

class gateway_clock
{
public:
    using steady_time = std::chrono::steady_clock::time_point;

    gateway_clock() : wall_(system_now()), steady_(std::chrono::steady_clock::now()) {}

    limiter::time_point to_limiter(steady_time t) const
    {
        return wall_ + std::chrono::duration_cast<limiter::microseconds>(t - steady_) +
               limiter::microseconds{ahead_.load(std::memory_order_relaxed)};
    }
    limiter::time_point now() const { return to_limiter(std::chrono::steady_clock::now()); }
    limiter::microseconds wall_ahead() const
    {
        return limiter::microseconds{wall_ahead_.load(std::memory_order_relaxed)};
    }
    limiter::moment moment_now() const { return {now(), wall_ahead()}; }
    // Compares with the wall clock. Returns whether it has stepped since the last call.
    bool follow_wall()
    {
        constexpr std::chrono::milliseconds least_step{10}, too_long{5};
        const auto before = std::chrono::steady_clock::now();
        const auto wall = system_now();
        if (std::chrono::steady_clock::now() - before > too_long)
            return false; // interrupted between the two clocks: the difference is not exact
        const auto steady = wall_ + std::chrono::floor<limiter::microseconds>(before - steady_);
        const auto ahead = wall - steady + limiter::microseconds{stepped_.load(std::memory_order_relaxed)};
        if (std::chrono::abs(ahead - wall_ahead()) < least_step)
            return false;
        wall_ahead_.store(ahead.count(), std::memory_order_relaxed);
        return true;
    }

    // Lets a test wait for a limit without sleeping.
    void advance(limiter::microseconds by) { ahead_.fetch_add(by.count(), std::memory_order_relaxed); }
    // Lets a test set the wall clock.
    void step_wall(limiter::microseconds by) { stepped_.fetch_add(by.count(), std::memory_order_relaxed); }

private:
    static limiter::time_point system_now()
    {
        return std::chrono::floor<limiter::microseconds>(std::chrono::system_clock::now());
    }
    limiter::time_point wall_;
    steady_time steady_;
    std::atomic<std::int64_t> ahead_{0}, stepped_{0};
    std::atomic<std::int64_t> wall_ahead_{0};
};

} // namespace headgate
