// Reads the CPU time of a process in nanoseconds, all threads together, from /proc/PID/task/*/schedstat. utime and
// stime of /proc/PID/stat are the same time in ticks of 10 ms, which is too coarse for a second of load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace load {

inline std::uint64_t cpu_nanoseconds(int process)
{
    std::uint64_t sum = 0;
    std::error_code gone; // threads may end while we look
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
        std::ifstream file(task.path() / "schedstat");
        std::uint64_t ran = 0;
        if (file >> ran)
            sum += ran;
    }
    return sum;
}

} // namespace load
