// Reads one answer from a socket: its status and its end. Every body must have a Content-Length, as all bodies of the
// benchmark have. Long bodies are dropped in the kernel, not copied.
#pragma once

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <strings.h>
#include <sys/socket.h>
#include <utility>

namespace load {

class answer
{
public:
    enum class state
    {
        incomplete, // the rest has not arrived
        complete,   // read to its end
        broken,     // the connection cannot be used any more
    };

    state read(int fd)
    {
        while (!has_head_) {
            const auto got = ::recv(fd, head_ + filled_, sizeof head_ - filled_, 0);
            if (got <= 0)
                return got < 0 && errno == EAGAIN ? state::incomplete : state::broken;
            filled_ += static_cast<std::size_t>(got);
            received_ += static_cast<std::uint64_t>(got);
            if (!read_head() && filled_ == sizeof head_)
                return state::broken;
        }
        while (left_ > 0) {
            const auto got = ::recv(fd, nullptr, left_, MSG_TRUNC); // discards what has arrived without a copy
            if (got <= 0)
                return got < 0 && errno == EAGAIN ? state::incomplete : state::broken;
            left_ -= static_cast<std::uint64_t>(got);
            received_ += static_cast<std::uint64_t>(got);
        }
        return state::complete;
    }

    void reset() { has_head_ = false, filled_ = 0, left_ = 0, closes_ = false; }
    int status() const { return status_; }
    bool closes() const { return closes_; }
    // Returns the number of bytes received since the last call.
    std::uint64_t take_bytes() { return std::exchange(received_, 0); }

private:
    bool read_head()
    {
        const std::string_view seen(head_, filled_);
        const auto end = seen.find("\r\n\r\n");
        if (end == seen.npos || seen.size() < 12)
            return false;
        has_head_ = true;
        status_ = std::atoi(head_ + 9);
        std::uint64_t length = 0;
        for (auto line = seen.find("\r\n"); line < end; line = seen.find("\r\n", line + 2)) {
            const char* field = head_ + line + 2;
            if (std::tolower(field[0]) != 'c')
                continue;
            if (::strncasecmp(field, "content-length:", 15) == 0)
                length = std::strtoull(field + 15, nullptr, 10);
            else if (::strncasecmp(field, "connection: close", 17) == 0)
                closes_ = true;
        }
        const auto here = filled_ - (end + 4);
        left_ = length > here ? length - here : 0;
        return true;
    }

    char head_[4096];
    std::size_t filled_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t received_ = 0;
    int status_ = 0;
    bool has_head_ = false;
    bool closes_ = false;
};

} // namespace load
