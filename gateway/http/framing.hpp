// Decides where a message ends from its list of fields and nothing else (hardening A1 to A7, B27, B31, C1, C4, C6, D1).
// Pure. An ambiguous message is an error, never a guess.
#pragma once

#include "gateway/http/connection.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/head/message_head.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::http {

enum class body_kind : std::uint8_t
{
    none,
    length,
    chunked,
    until_close // responses only
};

struct body_framing
{
    body_kind kind = body_kind::none;
    std::uint64_t length = 0; // of kind `length`

    bool operator==(const body_framing&) const = default;
};

struct request_framing
{
    body_framing body;
    connection_options connection;
    std::string_view host;                     // the Host field; empty when an HTTP/1.0 request has none
    bool keep_alive = false;                   // the client allows it; the session may still close
    bool expects_continue = false;             // an HTTP/1.1 client waits for 100 before it sends its body
    bool accepts_trailers = false;             // TE: trailers
    std::optional<std::uint64_t> max_forwards; // only read for OPTIONS and TRACE; 0 is answered here (B31)
};

// Returns the error that forbids forwarding this request, or none. `body_limit` is in bytes; 413 is decided here,
// before a byte is forwarded (A3).
http_error frame_request(const request_head& head, std::uint64_t body_limit, request_framing& out);

struct response_framing
{
    body_framing body;
    connection_options connection;
    std::optional<std::uint64_t> declared_length; // Content-Length as sent; HEAD and 304 relay it without a body (C6)
    bool interim = false;                         // 1xx: another head follows, except after 101
    bool reusable = false;                        // the connection may be pooled once the body is read (D6)
};

// `asked` is the method of the request this answers.
http_error frame_response(method_id asked, const response_head& head, response_framing& out);

} // namespace headgate::http
