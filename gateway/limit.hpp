// The limit step: asks every chain of the route, in order. A refusal in a later chain gives back what an earlier one
// took.
#pragma once

#include "gateway/http/errors.hpp"

namespace headgate {

class session;
struct exchange;

// Fills x.limit and x.limit_fields. An error: the request cannot be judged, because its key is malformed or missing.
http::http_error limit_request(session& client, exchange& x);

// The request has ended, however it did: it is no longer in flight.
void release_request(session& client, exchange& x);

} // namespace headgate
