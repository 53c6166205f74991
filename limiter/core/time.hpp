// Time in the limiter: whole microseconds since the Unix epoch. Always an argument: limiter/core never reads a clock.
#pragma once

#include <chrono>

namespace headgate::limiter {

using microseconds = std::chrono::microseconds;
using time_point = std::chrono::sys_time<microseconds>;

} // namespace headgate::limiter
