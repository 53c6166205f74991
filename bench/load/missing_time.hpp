// Time of some cores that nobody is seen to get.
//
// Some processes together never leave their cores idle: the proxy with one that runs while it sleeps (bench/awake.cpp),
// the load with the origin. What their cores had in time and none of them got, somebody else took: another process, or
// the host, where it tells (a guest's kernel then leaves it out of the CPU time of whoever ran). Where it does not
// tell, those who never sleep see that they stood still while they had nothing to do. So nothing that the proxy does
// decides.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace load {

// Who has nothing to do and needs so long for it stood still; the kernel's tick takes up to half of that.
inline constexpr std::chrono::nanoseconds longer_than_a_tick = std::chrono::microseconds(100);

inline std::chrono::nanoseconds read_clock(clockid_t which)
{
    timespec now{};
    ::clock_gettime(which, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Nanoseconds for which a process stood still, in a file that it shares.
using shared_sum = std::shared_ptr<std::atomic<std::int64_t>>;

inline shared_sum share_sum(const std::string& path)
{
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* const at = file >= 0 && ::ftruncate(file, sizeof(std::int64_t)) == 0
                         ? ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                         : MAP_FAILED;
    ::close(file);
    if (at == MAP_FAILED)
        throw std::runtime_error("cannot share " + path);
    return {static_cast<std::atomic<std::int64_t>*>(at), [](auto* mapped) { ::munmap(mapped, sizeof *mapped); }};
}

class missing_time
{
public:
    // `told`: files in which some of the processes tell how long they stood still.
    missing_time(std::size_t cores, const std::vector<int>& filling, const std::vector<std::string>& told)
        : cores_(static_cast<std::int64_t>(cores))
    {
        for (const auto process : filling) {
            clockid_t its{};
            if (::clock_getcpuclockid(process, &its) != 0)
                throw std::runtime_error("there is no process " + std::to_string(process));
            clocks_.push_back(its);
        }
        for (const auto& path : told)
            told_.push_back(share_sum(path));
    }

    // All of it until now; only differences mean anything.
    std::chrono::nanoseconds read() const
    {
        auto missing = read_clock(CLOCK_MONOTONIC) * cores_ + stood_still_;
        for (const auto its : clocks_)
            missing -= read_clock(its);
        for (const auto& sum : told_)
            missing += std::chrono::nanoseconds(sum->load(std::memory_order_relaxed));
        return missing;
    }
    // The caller itself had nothing to do, and needed so long for it.
    void idled(std::chrono::nanoseconds how_long)
    {
        if (how_long > longer_than_a_tick)
            stood_still_ += how_long;
    }

private:
    std::int64_t cores_;
    std::vector<clockid_t> clocks_;
    std::vector<shared_sum> told_;
    std::chrono::nanoseconds stood_still_{0};
};

} // namespace load
