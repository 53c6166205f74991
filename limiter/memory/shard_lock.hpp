// A lock for critical sections of some tens of nanoseconds: one exchange to lock, one plain store to unlock. A waiting
// thread spins briefly, then yields its core, so that a holder that lost its core can run. There is no wake-up: only a
// reload holds a shard for longer, and that is rare.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace headgate::limiter {

class shard_lock
{
public:
    void lock()
    {
        if (taken_.exchange(true, std::memory_order_acquire))
            lock_slowly();
    }
    void unlock() { taken_.store(false, std::memory_order_release); }

private:
    void lock_slowly()
    {
        for (int tries = 0;; ++tries) {
            if (!taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire))
                return;
            if (tries < 100)
                pause();
            else if (tries < 200)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds{50});
        }
    }
    static void pause()
    {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    std::atomic<bool> taken_{false};
};

} // namespace headgate::limiter
