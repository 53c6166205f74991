// The page of the request path: check, route, identify, limit, forward, respond, log.
#pragma once

#include "limiter/io/asio.hpp"

namespace headgate {

class client;
class worker;

// Answers the request whose head the client has; client::error() says if it is none.
task<> handle_request(worker& on, client& from);

} // namespace headgate
