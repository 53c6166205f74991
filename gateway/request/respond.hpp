// The answers that the gateway gives itself: errors, refusals, the echo, and what it tells of quotas.
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/core/time.hpp"
#include "limiter/io/asio.hpp"

namespace headgate {

class request;

// Answers with an error.
task<> respond_error(request& r, http::http_error error);

// Answers with the refusal of the limit step: 429 or what the configuration says, with Retry-After and the rules that
// refused.
task<> respond_refusal(request& r);

// Answers 200 without a body: a question that ends here (Max-Forwards: 0).
task<> respond_empty(request& r);

// Appends the fields that every answer of the gateway's own has: Date and the request's id.
void append_own_fields(http::byte_buffer& text, const request& r);

// Sends the answer whose fields and body the request's memory holds. What is left of the request's body is not wanted.
// `closes`: the client's bytes cannot be trusted any further.
task<> send_own_answer(request& r, unsigned status, bool closes = false);

// Writes the fields that tell of quotas, in the route's dialect, and what every rule said when an operator asks.
void write_limit_fields(request& r, limiter::time_point now);

} // namespace headgate
