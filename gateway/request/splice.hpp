// The rest of a long answer, passed from socket to socket inside the kernel (decision 10). Needs plain sockets on both
// sides.
#pragma once

#include "gateway/client/client.hpp"
#include "gateway/request/relay.hpp"
#include "limiter/io/asio.hpp"

#include <optional>

namespace headgate {

class request;
class upstream_connection;

// Whether what is left of the answer's body goes to the client as it comes, and is long enough.
bool may_splice(const request& r);

// Passes it. Returns nothing when it must be copied after all.
task<std::optional<relay_end>> splice_answer(request& r, upstream_connection& from, const client_watch& watch);

} // namespace headgate
