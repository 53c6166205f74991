// The status and the body of a refusal: the operator's template, or application/problem+json with the rules that
// refused. Pure. When an operator has blocked the key, no rule is violated, and the body says so.
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"

#include <cstdint>
#include <optional>

namespace headgate {

struct limit_outcome;
struct compiled_answers;

// Returns 403 when a key is blocked, 503 when counters that several keys share refused (the client has not used up a
// quota of its own), else the configured status.
unsigned refusal_status(const limit_outcome& limit, const config::answers_config& answers);

// Appends the body. `wait` is the value of Retry-After; none when waiting does not help.
void append_refusal_body(http::byte_buffer& out, const compiled_answers& answers, const limit_outcome& limit,
                         unsigned status, std::optional<std::uint64_t> wait);

} // namespace headgate
