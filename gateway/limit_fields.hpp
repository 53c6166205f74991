// What answers tell of quotas: the RateLimit fields (behaviours §5). Pure: made from what the limit step said.
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"

namespace headgate {

struct limit_outcome;

// Whole lines with CRLF: RateLimit-Policy and RateLimit, one item a rule.
void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers);

// max(1, ceil(wait)): a client that waits this long passes.
std::int64_t retry_after_seconds(limiter::microseconds wait);

} // namespace headgate
