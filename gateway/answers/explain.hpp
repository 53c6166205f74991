// X-RateLimit-Explain: every rule that was evaluated, with its decision, shadow rules included. For operators:
// clients of the configured networks may request it. Pure.
#pragma once

#include "gateway/http/buffer.hpp"

namespace headgate {

struct limit_outcome;

// Appends the whole line with CRLF; nothing when no rule was evaluated.
void append_explanation(http::byte_buffer& out, const limit_outcome& limit);

} // namespace headgate
