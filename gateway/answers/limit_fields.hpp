// The fields that show quotas to clients, in the configured dialect. Pure: it makes whole lines with CRLF from the
// outcome of the limit phase; no clock, no I/O. Shadow rules are never shown.
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"

#include <cstddef>

namespace headgate {

struct limit_outcome;

// `now` is when the decisions were made, for resets in seconds since 1970.
void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers,
                         limiter::time_point now);

// Appends one item of RateLimit-Policy, which is the same for every request: "minute";q=60;w=60
void append_policy(http::byte_buffer& out, const limiter::rule& rule, config::cost_unit unit);

// Appends a structured-field String. REQUIRES: `text` is printable; the configuration checks names of rules and chains.
void append_sf_string(http::byte_buffer& out, std::string_view text);

inline constexpr std::size_t no_rule = static_cast<std::size_t>(-1);

// Returns the first rule with the longest wait among those that refused; no_rule when an operator has blocked the key.
std::size_t find_refusing_rule(const limit_outcome& limit);

// Returns max(1, ceil(wait)): a client that waits this long is admitted.
std::uint64_t retry_after_seconds(limiter::microseconds wait);

} // namespace headgate
