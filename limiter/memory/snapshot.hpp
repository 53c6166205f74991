// The embedded store's memory across a restart: counters written to a file and read back, so that a day's quota is not
// forgotten. Times in it are absolute, so the time that passes while the process is down counts.
//
// A save writes `<path>.tmp`, syncs it and renames it: at any moment `<path>` is the previous snapshot or the new one,
// whole. A file that is cut short, altered or of another version is reported and ignored; it is never half loaded.
#pragma once

#include "limiter/memory/memory_store.hpp"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace headgate::limiter {

struct snapshot_saved
{
    std::string error; // empty: it is on disk
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
};
snapshot_saved save_snapshot(const memory_store& store, const std::filesystem::path& path, time_point now);

struct snapshot_loaded
{
    bool found = false;
    std::string error; // not empty: the file was ignored, and why
    time_point written_at{};
    std::uint64_t keys = 0;     // put in place
    std::uint64_t outlived = 0; // of chains that are gone from the configuration
    std::uint64_t no_room = 0;
};
// Call after every group is defined: counters are converted from the rules they were written under to today's.
snapshot_loaded load_snapshot(memory_store& store, const std::filesystem::path& path, time_point now);

// Saves at an interval on a thread of its own, and once more when it ends.
class snapshot_keeper
{
public:
    using clock = std::function<time_point()>;
    using report = std::function<void(const snapshot_saved&)>;

    snapshot_keeper(const memory_store& store, std::filesystem::path path, microseconds interval, clock now,
                    report say);
    ~snapshot_keeper();

private:
    void run(const std::stop_token& stop);

    const memory_store& store_;
    std::filesystem::path path_;
    microseconds interval_;
    clock now_;
    report say_;
    std::mutex lock_;
    std::condition_variable_any wake_;
    std::jthread thread_;
};

} // namespace headgate::limiter
