// The gateway's time: steady, so that a step of the system's clock neither refuses everyone nor lets everyone pass
// (L3), but counted from the epoch, so that a calendar day is a day.
#pragma once

#include "limiter/core/time.hpp"

#include <chrono>

namespace headgate {

class gateway_clock
{
public:
    using steady_time = std::chrono::steady_clock::time_point;

    gateway_clock() : wall_(wall_now()), steady_(std::chrono::steady_clock::now()) {}

    limiter::time_point to_limiter(steady_time t) const
    {
        return wall_ + std::chrono::duration_cast<limiter::microseconds>(t - steady_);
    }
    limiter::time_point now() const { return to_limiter(std::chrono::steady_clock::now()); }

private:
    static limiter::time_point wall_now()
    {
        return std::chrono::floor<limiter::microseconds>(std::chrono::system_clock::now());
    }
    limiter::time_point wall_;
    steady_time steady_;
};

} // namespace headgate
