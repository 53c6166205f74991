// What the gateway says itself: errors, refusals, and the RateLimit fields of every answer (behaviours §5).
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/task.hpp"

namespace headgate {

class session;
struct exchange;
struct limit_outcome;

// Sends an error and decides whether the connection goes on.
task<bool> answer_error(session& client, exchange& x, http::http_error error);

// 200 without a body: a question that ends here (Max-Forwards: 0).
task<bool> answer_empty(session& client, exchange& x);

// Sends the refusal of the limit step: 429 or what the configuration says, with Retry-After and the rules that refused.
task<bool> answer_refusal(session& client, exchange& x);

// Whole lines with CRLF: RateLimit-Policy and RateLimit, one item a rule.
void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers);

// max(1, ceil(wait)): a client that waits this long passes.
std::int64_t retry_after_seconds(limiter::microseconds wait);

} // namespace headgate
