// What the gateway says itself: errors and refusals (behaviours §5).
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/task.hpp"

namespace headgate {

class session;
struct exchange;

// Sends an error and decides whether the connection goes on.
task<bool> answer_error(session& client, exchange& x, http::http_error error);

// 200 without a body: a question that ends here (Max-Forwards: 0).
task<bool> answer_empty(session& client, exchange& x);

// Sends the refusal of the limit step: 429 or what the configuration says, with Retry-After and the rules that refused.
task<bool> answer_refusal(session& client, exchange& x);

} // namespace headgate
