// Time as the limiter sees it: whole microseconds since the Unix epoch, always handed in by the caller.
// Nothing in limiter/core reads a clock.
#pragma once

#include <chrono>

namespace headgate::limiter {

using microseconds = std::chrono::microseconds;
using time_point = std::chrono::sys_time<microseconds>;

} // namespace headgate::limiter
