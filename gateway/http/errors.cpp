#include "gateway/http/errors.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace headgate::http {

namespace {

using enum http_error;
using enum culprit;

constexpr std::array<error_info, static_cast<std::size_t>(count_)> table{{
    {none, 200, "none", "No error", gateway, false},

    {tls_on_plain_port, 400, "tls_on_plain_port", "TLS was spoken to a plain HTTP port", client, true},
    {http2_preface, 505, "http2_preface", "This port speaks HTTP/1.1 only", client, true},
    {bad_request_line, 400, "bad_request_line", "The request line is malformed", client, true},
    {bad_method, 400, "bad_method", "The method is not a token", client, true},
    {bad_target, 400, "bad_target", "The request target is malformed", client, true},
    {bad_version, 400, "bad_version", "The HTTP version is malformed", client, true},
    {unsupported_version, 505, "unsupported_version", "Only HTTP/1.0 and HTTP/1.1 are supported", client, true},
    {bare_line_end, 400, "bare_line_end", "A line must end in CR LF", client, true},
    {control_byte, 400, "control_byte", "The head contains a control byte", client, true},
    {obs_fold, 400, "obs_fold", "A header line begins with white space", client, true},
    {bad_header, 400, "bad_header", "A header line is malformed", client, true},
    {aliased_header, 400, "aliased_header", "A header name imitates a protected one", client, true},
    {bad_host, 400, "bad_host", "The Host is missing, repeated or malformed", client, true},
    {bad_connection, 400, "bad_connection", "The Connection header is malformed or names a protected field", client,
     true},
    {bad_content_length, 400, "bad_content_length", "The Content-Length is malformed or repeated", client, true},
    {bad_framing, 400, "bad_framing", "The length of the message is ambiguous", client, true},
    {unsupported_transfer_coding, 501, "unsupported_transfer_coding", "The only transfer coding is chunked", client,
     true},
    {bad_chunk, 400, "bad_chunk", "The chunked body is malformed", client, true},
    {chunk_extensions_too_large, 400, "chunk_extensions_too_large", "Too many bytes of chunk extensions", client, true},
    {trailers_too_large, 431, "trailers_too_large", "The trailer section is too large", client, true},
    {request_line_too_long, 414, "request_line_too_long", "The request line is too long", client, true},
    {head_too_large, 431, "head_too_large", "The head is too large", client, true},
    {too_many_fields, 431, "too_many_fields", "The head has too many fields", client, true},
    {length_required, 411, "length_required", "The body must have a Content-Length", client, true},
    {body_too_large, 413, "body_too_large", "The body is too large", client, true},
    {expectation_failed, 417, "expectation_failed", "The only expectation understood is 100-continue", client, true},
    {bad_upgrade, 400, "bad_upgrade", "The WebSocket handshake is malformed", client, true},
    {upgrade_version, 426, "upgrade_version", "The WebSocket version must be 13", client, false},
    {bad_max_forwards, 400, "bad_max_forwards", "The Max-Forwards is malformed", client, true},
    {bad_key, 400, "bad_key", "The credential that limits are counted by is repeated or malformed", client, false},
    {missing_key, 401, "missing_key", "A credential is required here", client, false},
    {unknown_key, 401, "unknown_key", "The API key is not known here", client, false},
    {bad_token, 401, "bad_token", "The token is not valid here", client, false},
    {bad_cost, 400, "bad_cost", "The header that says what the request costs is repeated or no number", client, false},
    {blocked, 403, "blocked", "This client is blocked", client, false},
    {head_timeout, 408, "head_timeout", "The head did not arrive in time", client, true},
    {body_timeout, 408, "body_timeout", "The body did not arrive in time", client, true},
    {client_gone, 400, "client_gone", "The client left before its message ended", client, true},

    {no_route, 404, "no_route", "Nothing is configured for this address", client, false},
    {method_not_allowed, 405, "method_not_allowed", "The method is not allowed here", client, false},
    {loop_detected, 508, "loop_detected", "The request came back to this gateway", gateway, false},
    {not_implemented, 501, "not_implemented", "The gateway cannot do this", gateway, false},
    {internal, 500, "internal", "The gateway failed", gateway, true},
    {overloaded, 503, "overloaded", "The gateway is overloaded", gateway, false},
    {draining, 503, "draining", "The gateway is shutting down", gateway, true},
    {tunnel_idle, 408, "tunnel_idle", "Neither side of the tunnel has sent anything", gateway, true},
    {store_unavailable, 503, "store_unavailable", "Limits cannot be counted for the moment", gateway, false},

    {upstream_busy, 503, "upstream_busy", "Too many requests wait for the upstream", upstream, false},
    {upstream_unavailable, 503, "upstream_unavailable", "No upstream server is available", upstream, false},
    {upstream_unresolved, 502, "upstream_unresolved", "The upstream's name cannot be resolved", upstream, false},
    {upstream_refused, 502, "upstream_refused", "The upstream refused the connection", upstream, false},
    {upstream_tls_failed, 502, "upstream_tls_failed", "TLS with the upstream failed", upstream, false},
    {upstream_reset, 502, "upstream_reset", "The upstream reset the connection", upstream, false},
    {upstream_closed, 502, "upstream_closed", "The upstream closed without an answer", upstream, false},
    {upstream_bad_head, 502, "upstream_bad_head", "The upstream's answer is malformed", upstream, false},
    {upstream_head_too_large, 502, "upstream_head_too_large", "The upstream's head is too large", upstream, false},
    {upstream_bad_framing, 502, "upstream_bad_framing", "The length of the upstream's answer is ambiguous", upstream,
     false},
    {upstream_bad_chunk, 502, "upstream_bad_chunk", "The upstream's chunked body is malformed", upstream, false},
    {upstream_truncated, 502, "upstream_truncated", "The upstream's answer ended early", upstream, false},
    {upstream_unasked_upgrade, 502, "upstream_unasked_upgrade", "The upstream switched protocols unasked", upstream,
     false},
    {upstream_too_many_interim, 502, "upstream_too_many_interim", "The upstream sent too many interim answers",
     upstream, false},
    {upstream_connect_timeout, 504, "upstream_connect_timeout", "The upstream could not be reached in time", upstream,
     false},
    {upstream_timeout, 504, "upstream_timeout", "The upstream did not answer in time", upstream, false},
    {upstream_idle_timeout, 504, "upstream_idle_timeout", "The upstream's answer stalled", upstream, false},
}};

consteval bool rows_are_in_order()
{
    for (std::size_t i = 0; i < table.size(); ++i)
        if (static_cast<std::size_t>(table[i].error) != i)
            return false;
    return true;
}
static_assert(rows_are_in_order(), "the table is indexed by http_error");

struct phrase
{
    std::uint16_t status;
    std::string_view text;
};
// In ascending order, for the binary search.
constexpr phrase phrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {508, "Loop Detected"},
};

} // namespace

const error_info& describe(http_error error) noexcept
{
    const auto row = static_cast<std::size_t>(error);
    return table[row < table.size() ? row : static_cast<std::size_t>(internal)];
}

http_error as_upstream_error(http_error error) noexcept
{
    switch (error) {
    case none:
        return none;
    case head_too_large:
    case too_many_fields:
    case request_line_too_long:
        return upstream_head_too_large;
    case bad_content_length:
    case bad_framing:
    case unsupported_transfer_coding:
        return upstream_bad_framing;
    case bad_chunk:
    case chunk_extensions_too_large:
    case trailers_too_large:
        return upstream_bad_chunk;
    default:
        return describe(error).to_blame == upstream ? error : upstream_bad_head;
    }
}

std::string_view reason_phrase(unsigned status) noexcept
{
    const auto* found = std::lower_bound(std::begin(phrases), std::end(phrases), status,
                                         [](const phrase& row, unsigned wanted) { return row.status < wanted; });
    return found != std::end(phrases) && found->status == status ? found->text : std::string_view{};
}

void append_json_escaped(byte_buffer& out, std::string_view text)
{
    constexpr std::string_view digits = "0123456789abcdef";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f)
            out.append("\\u00", digits[byte >> 4], digits[byte & 15]);
        else if (c == '"' || c == '\\')
            out.append('\\', c);
        else
            out.append(c);
    }
}

void append_error_body(byte_buffer& out, http_error error, std::string_view request_id)
{
    const auto& info = describe(error);
    out.append(R"({"type":"urn:headgate:error:)", info.code, R"(","title":")", info.title, R"(","status":)",
               decimal{info.status}, R"(,"code":")", info.code);
    if (!request_id.empty()) {
        out.append(R"(","request_id":")");
        append_json_escaped(out, request_id);
    }
    out.append("\"}\n");
}

} // namespace headgate::http
