// The wait of a request that a shaping rule delays.
#pragma once

#include "limiter/io/asio.hpp"

#include <chrono>

namespace headgate {

class request;

// Lets the request wait, as a shaping rule says. False when the client has left meanwhile: one that has only finished
// sending counts as gone too, for it must not keep a place that others wait for.
task<bool> hold(request& r, std::chrono::microseconds time);

} // namespace headgate
