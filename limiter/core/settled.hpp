// What a decision says once the true cost of its request is known. Pure.
#pragma once

#include "limiter/core/meter.hpp"

namespace headgate::limiter {

// Returns the decision as it would have been had `actual` been charged at `judged_at`, not `charged`. Computed from the
// decision alone, because the state may be in another process: `remaining` is exact; `reset_after` is exact to the
// microsecond, and for windows and logs of which a whole charge is taken back at most as long as before.
// REQUIRES: the decision admitted, and `charged` was taken.
decision settled(const meter& m, const decision& of, time_point judged_at, std::uint64_t charged, std::uint64_t actual);

} // namespace headgate::limiter
