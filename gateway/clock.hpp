// The gateway's time. It is steady, so that a step of the system clock neither refuses nor admits all clients (L3), and
// it is counted from the epoch, so that calendar windows begin with the calendar.
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

    gateway_clock() : wall_(wall_now()), steady_(std::chrono::steady_clock::now()) {}

    limiter::time_point to_limiter(steady_time t) const
    {
        return wall_ + std::chrono::duration_cast<limiter::microseconds>(t - steady_) +
               limiter::microseconds{ahead_.load(std::memory_order_relaxed)};
    }
    limiter::time_point now() const { return to_limiter(std::chrono::steady_clock::now()); }
    // Lets a test wait for a limit without sleeping.
    void advance(limiter::microseconds by) { ahead_.fetch_add(by.count(), std::memory_order_relaxed); }

private:
    static limiter::time_point wall_now()
    {
        return std::chrono::floor<limiter::microseconds>(std::chrono::system_clock::now());
    }
    limiter::time_point wall_;
    steady_time steady_;
    std::atomic<std::int64_t> ahead_{0};
};

} // namespace headgate
