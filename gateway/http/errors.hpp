// All errors of a request in one table: error -> status, stable code, title, culprit, and whether the client's
// connection must close. Clients see the code; a released code never changes.
#pragma once

#include "gateway/http/buffer.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class http_error : std::uint8_t
{
    none,
    // the client's message
    tls_on_plain_port,
    http2_preface,
    bad_request_line,
    bad_method,
    bad_target,
    bad_version,
    unsupported_version,
    bare_line_end,
    control_byte,
    obs_fold,
    bad_header,
    aliased_header,
    bad_host,
    bad_connection,
    bad_content_length,
    bad_framing,
    unsupported_transfer_coding,
    bad_chunk,
    chunk_extensions_too_large,
    trailers_too_large,
    request_line_too_long,
    head_too_large,
    too_many_fields,
    length_required,
    body_too_large,
    expectation_failed,
    bad_upgrade,
    upgrade_version,
    bad_max_forwards,
    bad_key,
    missing_key,
    unknown_key,
    bad_token,
    bad_cost,
    blocked,
    head_timeout,
    body_timeout,
    client_gone,
    // the gateway's own verdicts
    no_route,
    method_not_allowed,
    loop_detected,
    not_implemented,
    internal,
    overloaded,
    draining,
    tunnel_idle,
    store_unavailable, // and the rules refuse requests during an outage
    // the upstream
    upstream_busy,
    upstream_unavailable,
    upstream_unresolved,
    upstream_refused,
    upstream_tls_failed,
    upstream_reset,
    upstream_closed,
    upstream_bad_head,
    upstream_head_too_large,
    upstream_bad_framing,
    upstream_bad_chunk,
    upstream_truncated,
    upstream_unasked_upgrade,
    upstream_too_many_interim,
    upstream_connect_timeout,
    upstream_timeout,
    upstream_idle_timeout,
    count_
};

enum class culprit : std::uint8_t
{
    client,
    gateway,
    upstream
};

struct error_info
{
    http_error error;
    std::uint16_t status;
    std::string_view code;
    std::string_view title;
    culprit to_blame;
    bool closes; // the client's connection must close, because its next bytes cannot be trusted (A15)
};

const error_info& describe(http_error error) noexcept;

// Returns the upstream's version of an error in a head, framing or chunks (D1, C13).
http_error as_upstream_error(http_error error) noexcept;

// Returns RFC 9110's phrase, or an empty view for a status that it does not define.
std::string_view reason_phrase(unsigned status) noexcept;

// Appends the application/problem+json body of an error. `request_id` may be empty.
void append_error_body(byte_buffer& out, http_error error, std::string_view request_id);

// Appends `text` as the inside of a JSON string; bytes that are not printable ASCII become escapes.
void append_json_escaped(byte_buffer& out, std::string_view text);

} // namespace headgate::http
