// What a refusal says in its body: the operator's template, or application/problem+json with the rules that refused
// (behaviours §5). Pure. An operator's block violates no rule, and says so.
#pragma once

#include "gateway/http/buffer.hpp"

#include <cstdint>
#include <optional>

namespace headgate {

struct limit_outcome;
struct compiled_answers;

// `wait` is what Retry-After says; nothing when no wait helps.
void append_refusal_body(http::byte_buffer& out, const compiled_answers& answers, const limit_outcome& limit,
                         unsigned status, std::optional<std::uint64_t> wait);

} // namespace headgate
