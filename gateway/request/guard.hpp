// The guards of a route's keys, as the limit step asks them: chains that take only for new identities (decision 12).
#pragma once

#include "gateway/request/request_memory.hpp"
#include "limiter/core/time.hpp"

namespace headgate {

class request;

// Returns whether the guard, which is the chain's, has to charge the client's address: the request's identity could
// have been made up and was not seen yet. The chain remembers it until the request is admitted.
bool has_new_identity(request& r, charged_chain& chain, limiter::time_point now);

// Remembers the new identities of a request that all chains have admitted. Where another request with the same identity
// was faster, the charge is given back.
void remember_identities(request& r, limiter::time_point now);

} // namespace headgate
