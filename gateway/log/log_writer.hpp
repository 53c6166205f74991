// The thread that writes the access log. Workers hand it full buffers and get empty ones back; they never wait for it.
// Lines that it cannot write (a full disk, a closed or blocked pipe) are dropped and counted: the gateway keeps
// serving.
#pragma once

#include "gateway/http/buffer.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace headgate {

// An access log that is ready to be written to: a reload opens it before it changes anything.
class log_file
{
public:
    // A file, "-" (standard output) or "off". Throws std::system_error when the file cannot be opened.
    explicit log_file(std::string path);
    log_file(const log_file&) = delete;
    log_file& operator=(const log_file&) = delete;
    ~log_file();

    const std::string& path() const { return path_; }
    int release() { return std::exchange(descriptor_, -1); }

private:
    std::string path_;
    int descriptor_ = -1; // stays -1 for "off"
};

class log_writer
{
public:
    static constexpr std::size_t buffer_size = 64 * 1024; // a worker hands its buffer over when it is about this full
    static constexpr std::size_t most_pending = 64;       // buffers that wait to be written: 4 MiB
    static constexpr std::size_t long_queue = 8;

    log_writer() = default;
    ~log_writer() { stop(); }
    log_writer(const log_writer&) = delete;
    log_writer& operator=(const log_writer&) = delete;

    // Writes to this file from now on.
    void use(log_file& file);
    void use(const std::string& path)
    {
        log_file file(path);
        use(file);
    }
    // Opens the file by its name again, for log rotation.
    void reopen();
    // Writes the pending lines, for at most one second, and ends the thread.
    void stop();

    // Takes the lines and leaves an empty buffer. Returns false and changes nothing when too many buffers are pending;
    // a buffer that is not full is refused earlier. May be called from any worker.
    bool take(http::byte_buffer& lines);
    // Drops whole lines and counts them.
    void drop(std::string_view lines, std::string why);
    std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

private:
    void run();
    void change_file();
    void write(std::string_view lines);
    bool wait_until_writable();
    void report();

    std::mutex lock_; // guards the next block
    std::condition_variable wake_;
    std::array<http::byte_buffer, most_pending> pending_; // a ring buffer
    std::size_t first_ = 0, count_ = 0;
    std::vector<http::byte_buffer> spare_;
    std::string path_ = "off";
    int next_file_ = -1;
    bool has_next_file_ = false;
    std::string why_; // the reason of the last dropped lines

    std::atomic<bool> reopen_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> dropped_{0};
    std::chrono::steady_clock::time_point give_up_at_{}; // set before stopping_

    // Used by the writer's thread only.
    int file_ = -1;
    bool is_plain_file_ = false;
    bool torn_ = false; // the last line that was written lacks its end
    std::uint64_t reported_ = 0;
    std::chrono::steady_clock::time_point next_report_{};
    std::thread thread_;
};

} // namespace headgate
