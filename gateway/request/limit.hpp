// The limit step: asks every chain of the route, in order. A refusal by a later chain gives back what earlier ones
// took.
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/io/asio.hpp"

namespace headgate {

class request;

// Asks the chains of the route one after the other, up to the first whose counters are in Redis: then
// `limits.waits_for_redis` is set. Fills `limits.outcome` and, at the end, the fields that tell of quotas.
// An error: the request cannot be judged, because its key or its cost is malformed or missing. What chains before that
// one have taken stays taken: a limit by address counts those who guess keys (K8).
http::http_error limit_in_memory(request& r);

// Goes on from there.
task<http::http_error> limit_in_redis(request& r);

} // namespace headgate
