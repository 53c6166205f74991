// What the gateway says itself: errors, refusals, and what it tells of quotas (behaviours §5).
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/core/time.hpp"
#include "limiter/io/task.hpp"

namespace headgate {

class session;
struct exchange;

// Sends an error and decides whether the connection goes on.
task<bool> answer_error(session& client, exchange& x, http::http_error error);

// 200 without a body: a question that ends here (Max-Forwards: 0).
task<bool> answer_empty(session& client, exchange& x);

// Writes x.limit_fields: the quotas in the route's dialect, and what every rule said when an operator asks.
void tell_limits(exchange& x, limiter::time_point now);

// Sends the refusal of the limit step: 429 or what the configuration says, with Retry-After and the rules that refused.
task<bool> answer_refusal(session& client, exchange& x);

} // namespace headgate
