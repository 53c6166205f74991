// What one rule says of one request.
#pragma once

#include "limiter/core/time.hpp"

#include <cstdint>

namespace headgate::limiter {

// "No wait would help": the cost can never fit, or nothing was refused.
inline constexpr microseconds never{-1};

struct decision
{
    bool admitted = true;
    std::uint64_t limit = 0;
    std::uint64_t remaining = 0;  // what would still pass now
    microseconds retry_after{-1}; // refused: waiting exactly this long admits, when no one else came
    microseconds reset_after{0};  // until the key is as if it had never been seen
    microseconds delay{0};        // admitted by a shaping rule: how long to hold the request

    friend bool operator==(const decision&, const decision&) = default;
};

} // namespace headgate::limiter
