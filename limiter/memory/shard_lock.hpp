// A lock for critical sections of some tens of nanoseconds: one exchange to take, one plain store to free. Who has to
// wait spins briefly, then gives the core away, so that a holder that lost its own is not fought for. A reload holds a
// shard for longer, and is rare; nobody needs waking for that.
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
