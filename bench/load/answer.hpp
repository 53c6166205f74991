// Reads one answer off a socket: its status, when all of it had come, and how long the origin says it took. Bodies must
// have a Content-Length, as all bodies here have, and are thrown away in the kernel where they are long.
#pragma once

#include "bench/load/stamps.hpp"

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <strings.h>
#include <utility>

namespace load {

class answer
{
public:
    enum class state
    {
        more,   // comes later
        whole,  // read to its end
        broken, // the connection is of no more use
    };

    state read(int fd)
    {
        while (!headed_) {
            const auto got = receive(fd, head_ + filled_, sizeof head_ - filled_, 0, came_);
            if (got <= 0)
                return got < 0 && errno == EAGAIN ? state::more : state::broken;
            filled_ += static_cast<std::size_t>(got);
            taken_ += static_cast<std::uint64_t>(got);
            if (!read_head() && filled_ == sizeof head_)
                return state::broken;
        }
        while (left_ > 0) {
            const auto got = receive(fd, nullptr, left_, MSG_TRUNC, came_); // takes what has come, copies nothing
            if (got <= 0)
                return got < 0 && errno == EAGAIN ? state::more : state::broken;
            left_ -= static_cast<std::uint64_t>(got);
            taken_ += static_cast<std::uint64_t>(got);
        }
        return state::whole;
    }

    void reset() { headed_ = false, filled_ = 0, left_ = 0, closes_ = false, came_ = {}, origin_took_ = {}; }
    int status() const { return status_; }
    bool closes() const { return closes_; }
    const stamp& came() const { return came_; } // its last byte
    std::chrono::nanoseconds origin_took() const { return origin_took_; }
    // Bytes that have come since it was last asked.
    std::uint64_t take_bytes() { return std::exchange(taken_, 0); }

private:
    bool read_head()
    {
        const std::string_view seen(head_, filled_);
        const auto end = seen.find("\r\n\r\n");
        if (end == seen.npos || seen.size() < 12)
            return false;
        headed_ = true;
        status_ = std::atoi(head_ + 9);
        std::uint64_t length = 0;
        for (auto line = seen.find("\r\n"); line < end; line = seen.find("\r\n", line + 2)) {
            const char* field = head_ + line + 2;
            const auto first = std::tolower(field[0]);
            if (first != 'c' && first != 'x')
                continue;
            if (::strncasecmp(field, "content-length:", 15) == 0)
                length = std::strtoull(field + 15, nullptr, 10);
            else if (::strncasecmp(field, "connection: close", 17) == 0)
                closes_ = true;
            else if (::strncasecmp(field, "x-origin-took:", 14) == 0)
                origin_took_ = std::chrono::nanoseconds(std::strtoll(field + 14, nullptr, 10));
        }
        const auto here = filled_ - (end + 4);
        left_ = length > here ? length - here : 0;
        return true;
    }

    char head_[4096];
    std::size_t filled_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t taken_ = 0;
    int status_ = 0;
    bool headed_ = false;
    bool closes_ = false;
    stamp came_;
    std::chrono::nanoseconds origin_took_{0};
};

} // namespace load
