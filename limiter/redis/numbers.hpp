// The numbers in arguments of the Lua scripts and in values in Redis: 7 bytes, little-endian, each exact in a double.
#pragma once

#include "limiter/core/meter.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headgate::limiter::redis {

inline constexpr std::size_t number_bytes = 7;
// The largest number for which it and all smaller whole numbers are exact in Lua. Larger results are set to it.
inline constexpr std::uint64_t largest = (std::uint64_t{1} << 53) - 1;

inline std::uint64_t capped(std::uint64_t n) { return n < largest ? n : largest; }

class number_writer
{
public:
    explicit number_writer(char* to) : at_(to) {}

    void byte(unsigned n) { *at_++ = static_cast<char>(n); }
    void number(std::uint64_t n)
    {
        n = capped(n);
        for (std::size_t i = 0; i < number_bytes; ++i, n >>= 8)
            *at_++ = static_cast<char>(n & 0xff);
    }
    char* end() const { return at_; }

private:
    char* at_;
};

// Reads numbers from a text. Once one is missing or too large, all further reads fail.
class number_reader
{
public:
    explicit number_reader(std::string_view from) : rest_(from) {}

    unsigned byte()
    {
        if (rest_.empty())
            return fail();
        const auto n = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        return n;
    }
    std::uint64_t number()
    {
        if (rest_.size() < number_bytes)
            return fail();
        std::uint64_t n = 0;
        for (std::size_t i = number_bytes; i > 0; --i)
            n = n << 8 | static_cast<unsigned char>(rest_[i - 1]);
        rest_.remove_prefix(number_bytes);
        return n <= largest ? n : fail();
    }
    time_point moment() { return time_point{microseconds{static_cast<std::int64_t>(number())}}; }

    unsigned fail()
    {
        failed_ = true;
        return 0;
    }
    bool failed() const { return failed_; }
    bool at_end() const { return !failed_ && rest_.empty(); }
    std::string_view rest() const { return rest_; }

private:
    std::string_view rest_;
    bool failed_ = false;
};

inline std::uint64_t to_number(time_point t)
{
    const auto us = t.time_since_epoch().count();
    return us > 0 ? capped(static_cast<std::uint64_t>(us)) : 0;
}

// Limits a duration to 140 years, so that a moment that far in the future is exact too.
inline std::uint64_t to_number(microseconds span)
{
    constexpr auto most = std::uint64_t{1} << 52;
    const auto us = span.count() > 0 ? static_cast<std::uint64_t>(span.count()) : 0;
    return us < most ? us : most;
}

// A bucket's time in two numbers: whole microseconds, and the remainder in ticks.
struct bucket_time
{
    std::uint64_t us = 0;
    std::uint64_t rest = 0;
};
inline bucket_time split(const meter& m, wide ticks)
{
    const auto a_us = static_cast<wide>(m.ticks_per_us);
    const wide us = ticks / a_us;
    if (us >= static_cast<wide>(largest))
        return {largest, 0};
    return {static_cast<std::uint64_t>(us), static_cast<std::uint64_t>(ticks % a_us)};
}
inline wide join(const meter& m, bucket_time t)
{
    return static_cast<wide>(t.us) * static_cast<wide>(m.ticks_per_us) + static_cast<wide>(t.rest);
}
inline wide ticks_of(const meter& m, std::uint64_t cost)
{
    return static_cast<wide>(cost) * static_cast<wide>(m.ticks_per_unit);
}

} // namespace headgate::limiter::redis
