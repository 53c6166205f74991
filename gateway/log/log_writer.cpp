#include "gateway/log/log_writer.hpp"

#include "limiter/io/kernel_pipe.hpp"

#include <climits>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace headgate {

namespace {

constexpr std::chrono::seconds grace{1};
constexpr std::chrono::minutes report_interval{1};
constexpr int look_up_milliseconds = 100; // how often a blocked write checks whether to give up
// Added to the thread's nice value: on a busy machine workers run first, and the thread still gets a tenth of a core,
// which writes some hundred MB per second.
constexpr int behind_workers = 10;

// Opens the file as non-blocking, so that neither a FIFO without a reader nor a full one blocks the thread.
int open_file(const std::string& path)
{
    if (path == "-")
        return ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
}

} // namespace

log_file::log_file(std::string path) : path_(std::move(path))
{
    if (path_ == "off")
        return;
    descriptor_ = open_file(path_);
    if (descriptor_ < 0)
        throw std::system_error(errno, std::generic_category(), "cannot open the access log " + path_);
}

log_file::~log_file()
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void log_writer::use(log_file& file)
{
    std::lock_guard guard(lock_);
    if (file.path() == path_)
        return;
    if (has_next_file_ && next_file_ >= 0)
        ::close(next_file_);
    next_file_ = file.release();
    has_next_file_ = true;
    path_ = file.path();
    if (!thread_.joinable()) {
        spare_.reserve(most_pending);
        thread_ = std::thread([this] { run(); });
    }
    wake_.notify_one();
}

void log_writer::reopen()
{
    reopen_ = true;
    std::lock_guard guard(lock_);
    wake_.notify_one();
}

void log_writer::stop()
{
    if (!thread_.joinable())
        return;
    {
        std::lock_guard guard(lock_);
        give_up_at_ = std::chrono::steady_clock::now() + grace;
        stopping_ = true;
        wake_.notify_one();
    }
    thread_.join();
}

bool log_writer::take(http::byte_buffer& lines)
{
    {
        std::lock_guard guard(lock_);
        if (count_ >= (lines.size() < buffer_size ? long_queue : most_pending))
            return false;
        pending_[(first_ + count_++) % most_pending] = std::move(lines);
        if (!spare_.empty()) {
            lines = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    wake_.notify_one();
    return true;
}

void log_writer::drop(std::string_view lines, std::string why)
{
    dropped_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    std::lock_guard guard(lock_);
    why_ = std::move(why);
}

// ---- the thread

void log_writer::run()
{
    block_broken_pipes();
    static_cast<void>(::nice(behind_workers)); // this thread alone

    http::byte_buffer lines;
    for (;;) {
        {
            std::unique_lock lock(lock_);
            wake_.wait(lock, [this] { return count_ > 0 || has_next_file_ || reopen_ || stopping_; });
            if (count_ == 0 && stopping_)
                break;
            if (count_ > 0) {
                lines = std::move(pending_[first_]);
                first_ = (first_ + 1) % most_pending;
                --count_;
            }
        }
        change_file();
        write(lines.view());
        report();
        lines.clear();
        std::lock_guard guard(lock_);
        if (lines.capacity() > 0 && spare_.size() < most_pending)
            spare_.push_back(std::move(lines));
    }
    next_report_ = {};
    report();
    if (file_ >= 0)
        ::close(std::exchange(file_, -1));
}

void log_writer::change_file()
{
    std::string path;
    int file = -1;
    {
        std::lock_guard guard(lock_);
        const bool again = reopen_.exchange(false);
        if (!has_next_file_ && (!again || path_ == "off" || path_ == "-"))
            return;
        path = path_;
        file = std::exchange(next_file_, -1);
        if (!std::exchange(has_next_file_, false)) {
            file = open_file(path);
            if (file < 0) {
                spdlog::error("cannot reopen the access log {}: {}; the previous file stays in use", path,
                              std::strerror(errno));
                return;
            }
        }
    }
    if (file_ >= 0)
        ::close(file_);
    file_ = file;
    torn_ = false;
    struct stat about
    {};
    is_plain_file_ = file_ >= 0 && ::fstat(file_, &about) == 0 && S_ISREG(about.st_mode);
}

void log_writer::write(std::string_view lines)
{
    bool mid_line = false;
    const auto lose_rest = [&](std::string why) {
        torn_ = torn_ || mid_line;
        drop(lines, std::move(why));
    };
    while (!lines.empty()) {
        if (!wait_until_writable())
            return lose_rest("the pipe has no reader");
        if (torn_ && ::write(file_, "\n", 1) == 1) // the rest of a line was lost: end it before the next line
            torn_ = false;
        // A pipe that has room takes this much without blocking, also if it is not set to non-blocking.
        const auto most = is_plain_file_ ? lines.size() : std::min<std::size_t>(lines.size(), PIPE_BUF);
        const auto n = ::write(file_, lines.data(), most);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return lose_rest(n < 0 ? std::strerror(errno) : "the file took no bytes");
        lines.remove_prefix(static_cast<std::size_t>(n));
        mid_line = lines.data()[-1] != '\n';
    }
}

// Returns false when the pending lines will not be written any more: the writer stops, or another file is to be used.
bool log_writer::wait_until_writable()
{
    if (is_plain_file_ || file_ < 0)
        return file_ >= 0;
    for (;;) {
        const bool over = reopen_ || (stopping_ && std::chrono::steady_clock::now() >= give_up_at_);
        pollfd room{file_, POLLOUT, 0};
        if (::poll(&room, 1, over ? 0 : look_up_milliseconds) != 0)
            return true; // or an error, which write will return
        report();
        if (over)
            return false;
    }
}

void log_writer::report()
{
    const auto dropped = dropped_.load(std::memory_order_relaxed);
    if (dropped == reported_)
        return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_report_)
        return;
    std::string why;
    {
        std::lock_guard guard(lock_);
        why = why_;
    }
    spdlog::warn("access log: {} lines dropped: {}", dropped - reported_, why);
    reported_ = dropped;
    next_report_ = now + report_interval;
}

} // namespace headgate
