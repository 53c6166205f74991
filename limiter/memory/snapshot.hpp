// Snapshots: the counters of a memory store in a file, so that a restart does not forget a day's quota. Times in it are
// those of the wall clock, so the time while the process is down counts. A file from the future was written by a clock
// that was ahead: its counters count as if they had been written now.
//
// A save writes `<path>.tmp`, syncs it and renames it: `<path>` is always a whole snapshot, the previous or the new
// one. A file that is truncated, altered or of another version is reported and ignored; it is never partly loaded.
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
    std::string error; // empty: the snapshot is on disk
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
};
snapshot_saved save_snapshot(const memory_store& store, const std::filesystem::path& path, moment now);

struct snapshot_loaded
{
    bool found = false;
    std::string error; // not empty: why the file was ignored
    time_point written_at{};
    std::uint64_t keys = 0;     // restored
    std::uint64_t outlived = 0; // keys of chains that the configuration no longer has
    std::uint64_t no_room = 0;
};
// Loads a snapshot. Counters are converted from the rules they were written under to the current ones.
// REQUIRES: every group is defined.
snapshot_loaded load_snapshot(memory_store& store, const std::filesystem::path& path, time_point now);

// Saves at an interval on its own thread, and once more when it is destroyed.
class snapshot_keeper
{
public:
    using clock = std::function<moment()>;
    using report = std::function<void(const snapshot_saved&)>;

    snapshot_keeper(const memory_store& store, std::filesystem::path path, microseconds interval, clock now,
                    report report_saved);
    ~snapshot_keeper();

private:
    void run(const std::stop_token& stop);

    const memory_store& store_;
    std::filesystem::path path_;
    microseconds interval_;
    clock now_;
    report report_;
    std::mutex lock_;
    std::condition_variable_any wake_;
    std::jthread thread_;
};

} // namespace headgate::limiter
