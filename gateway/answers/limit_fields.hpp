// What answers tell of quotas, in the dialect the configuration chose (behaviours §5). Pure: whole lines with CRLF,
// made from what the limit step said; no clock, no I/O. Shadow rules are never shown.
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"

#include <cstddef>

namespace headgate {

struct limit_outcome;

// `now` is when the decisions were made, for resets that are told in seconds since 1970.
void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers,
                         limiter::time_point now);

// One item of RateLimit-Policy, which is the same for every request: "minute";q=60;w=60
void append_policy(http::byte_buffer& out, const limiter::rule& rule, config::cost_unit unit);

// A structured-field String. Names of rules and chains are checked to be printable when the configuration is loaded.
void append_sf_string(http::byte_buffer& out, std::string_view text);

inline constexpr std::size_t no_rule = static_cast<std::size_t>(-1);

// Of the rules that refused, the first with the longest wait; no_rule when an operator's block did.
std::size_t find_refusing_rule(const limit_outcome& limit);

// max(1, ceil(wait)): a client that waits this long passes.
std::uint64_t retry_after_seconds(limiter::microseconds wait);

} // namespace headgate
