// The decision of one rule about one request.
#pragma once

#include "limiter/core/time.hpp"

#include <cstdint>

namespace headgate::limiter {

// No wait would help: the cost exceeds the limit, or nothing was refused.
inline constexpr microseconds never{-1};

struct decision
{
    bool admitted = true;
    std::uint64_t limit = 0;
    std::uint64_t remaining = 0; // cost that would still be admitted now
    microseconds retry_after{
        -1}; // refused: after exactly this wait the same cost is admitted, if the key was not used meanwhile
    microseconds reset_after{0}; // until the key has fully recovered
    microseconds delay{0};       // admitted by a shaping rule: how long to hold the request

    friend bool operator==(const decision&, const decision&) = default;
};

} // namespace headgate::limiter
