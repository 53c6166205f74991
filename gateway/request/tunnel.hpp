// What a WebSocket connection says, once its handshake is made.
#pragma once

#include "limiter/io/asio.hpp"

namespace headgate {

class request;
class upstream_connection;

// Relays bytes both ways until either side ends or neither has sent anything for timeouts.tunnel, after a WebSocket
// handshake.
task<> relay_tunnel(request& r, upstream_connection& link);

} // namespace headgate
