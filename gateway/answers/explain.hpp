// X-RateLimit-Explain: every rule that was consulted and what it said, shadow rules too, for operators who ask from a
// network of theirs. Pure.
#pragma once

#include "gateway/http/buffer.hpp"

namespace headgate {

struct limit_outcome;

// The whole line with CRLF; nothing when no rule was consulted.
void append_explanation(http::byte_buffer& out, const limit_outcome& limit);

} // namespace headgate
