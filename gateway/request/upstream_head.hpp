// The head of a request as it goes to the upstream. No I/O.
#pragma once

#include <cstdint>

namespace headgate {

class request;

// Writes it to the request's memory. `server`: its number among the upstream's.
void build_upstream_head(request& r, std::uint32_t server, bool websocket);

} // namespace headgate
