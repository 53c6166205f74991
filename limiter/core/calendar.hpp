// Where a fixed window that begins now will end: by its length, by the clock, or by the calendar of a time zone.
#pragma once

#include "limiter/core/rule.hpp"

namespace headgate::limiter {

// The end of the window of `r` that `now` falls into (align: first: that begins now).
time_point window_end(const rule& r, time_point now);

} // namespace headgate::limiter
