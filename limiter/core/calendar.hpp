// The end of a fixed window: by its length, by the clock, or by the calendar of a time zone.
#pragma once

#include "limiter/core/rule.hpp"

namespace headgate::limiter {

// Returns the end of the window of `r` that contains `now`. With window_align::first: of a window that begins at `now`.
time_point window_end(const rule& r, time_point now);

} // namespace headgate::limiter
