// What a WebSocket connection says, once its handshake is made.
#pragma once

#include "gateway/request/exchange.hpp"
#include "gateway/request/session.hpp"
#include "gateway/upstream/upstream.hpp"
#include "limiter/io/task.hpp"

namespace headgate {

// Bytes both ways until either side ends, after a WebSocket handshake.
task<void> relay_tunnel(session& client, exchange& x, upstream_connection& link);

} // namespace headgate
