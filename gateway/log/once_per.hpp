// Keeps a message that every request could cause from filling the log.
#pragma once

#include <atomic>
#include <chrono>

namespace headgate {

// May be used by any thread.
class once_per
{
public:
    using clock = std::chrono::steady_clock;

    explicit once_per(clock::duration period) : period_(period) {}

    // Returns true to one caller per period.
    bool is_due(clock::time_point now)
    {
        auto next = next_.load(std::memory_order_relaxed);
        return now >= next && next_.compare_exchange_strong(next, now + period_, std::memory_order_relaxed);
    }

private:
    const clock::duration period_;
    std::atomic<clock::time_point> next_{clock::time_point::min()};
};

} // namespace headgate
