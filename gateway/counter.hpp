// A number that one thread writes and any thread may read: plain stores, no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>

namespace headgate {

class counter
{
public:
    void add(std::uint64_t n = 1)
    {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void subtract(std::uint64_t n = 1) { add(~n + 1); }
    void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
    std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

} // namespace headgate
