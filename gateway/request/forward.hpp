// The forward step: one exchange with the route's upstream, and its answer on the way to the client.
#pragma once

#include "limiter/io/asio.hpp"

namespace headgate {

class request;

task<> forward(request& r);

} // namespace headgate
