#include "gateway/http/framing.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/text.hpp"

namespace headgate::http {

namespace {

// Every Content-Length and Transfer-Encoding line of a message, before it is decided what they mean together.
struct length_fields
{
    unsigned lengths = 0;
    unsigned codings = 0;
    std::uint64_t length = 0;
    bool chunked = false;
};

http_error frame_body(const length_fields& found, unsigned minor_version, body_framing& out)
{
    if (found.codings != 0) {
        // Either field alone would be clear; together two parsers may each believe the other one (A5).
        if (found.lengths != 0 || minor_version == 0)
            return http_error::bad_framing;
        if (found.codings != 1)
            return http_error::bad_framing;
        if (!found.chunked)
            return http_error::unsupported_transfer_coding;
        out = {body_kind::chunked, 0};
    } else if (found.lengths != 0) {
        out = {body_kind::length, found.length};
    }
    return http_error::none;
}

http_error read_expect(std::string_view value, unsigned minor_version, request_framing& out)
{
    // RFC 9110 §10.1.1: an expectation in an HTTP/1.0 request is ignored.
    if (minor_version == 0)
        return http_error::none;
    if (!equals_ignoring_case(value, "100-continue"))
        return http_error::expectation_failed;
    out.expects_continue = true;
    return http_error::none;
}

http_error read_max_forwards(const request_head& head, std::string_view value, request_framing& out)
{
    if (head.method_number != method_id::options && head.method_number != method_id::trace)
        return http_error::none;
    std::uint64_t hops = 0;
    if (out.max_forwards || !parse_decimal(value, hops))
        return http_error::bad_max_forwards;
    out.max_forwards = hops;
    return http_error::none;
}

bool has_item(std::string_view list, std::string_view wanted)
{
    list_items items(list);
    for (std::string_view item; items.next(item);)
        if (equals_ignoring_case(item, wanted))
            return true;
    return false;
}

bool keeps_alive(unsigned minor_version, const connection_options& connection)
{
    return !connection.close && (minor_version == 1 || connection.keep_alive);
}

} // namespace

http_error frame_request(const request_head& head, std::uint64_t body_limit, request_framing& out)
{
    out.body = {};
    out.host = {};
    out.keep_alive = out.expects_continue = out.accepts_trailers = false; // a refused head promises nothing
    out.max_forwards.reset();
    length_fields found;
    unsigned hosts = 0;
    for (const auto& line : head.fields.lines) {
        auto error = http_error::none;
        switch (line.id) {
        case field_id::content_length:
            // Two lines are refused even when they agree (A1); RFC 9110 §8.6 would allow them.
            if (++found.lengths > 1 || !parse_decimal(line.value, found.length))
                error = http_error::bad_content_length;
            break;
        case field_id::transfer_encoding:
            ++found.codings;
            found.chunked = equals_ignoring_case(line.value, "chunked");
            break;
        case field_id::host:
            if (++hosts > 1 || !parse_host(line.value))
                error = http_error::bad_host;
            out.host = line.value;
            break;
        case field_id::expect:
            error = read_expect(line.value, head.minor_version, out);
            break;
        case field_id::te:
            out.accepts_trailers = out.accepts_trailers || has_item(line.value, "trailers");
            break;
        case field_id::max_forwards:
            error = read_max_forwards(head, line.value, out);
            break;
        default:
            break;
        }
        if (error != http_error::none)
            return error;
    }
    if (hosts == 0 && head.minor_version == 1)
        return http_error::bad_host;
    if (const auto error = frame_body(found, head.minor_version, out.body); error != http_error::none)
        return error;
    if (const auto error = read_connection(head.fields, direction::request, out.connection); error != http_error::none)
        return error;
    if (out.body.length > body_limit)
        return http_error::body_too_large;
    // The gateway offers neither tunnels nor an echo of the request's headers (B31). TRACE with Max-Forwards: 0 is
    // refused like any other TRACE.
    if (head.method_number == method_id::connect || head.method_number == method_id::trace)
        return http_error::method_not_allowed;
    out.keep_alive = keeps_alive(head.minor_version, out.connection);
    return http_error::none;
}

http_error frame_response(method_id asked, const response_head& head, response_framing& out)
{
    out.body = {};
    out.connection.clear();
    out.declared_length.reset();
    out.interim = out.reusable = false;
    length_fields found;
    for (const auto& line : head.fields.lines) {
        if (line.id == field_id::content_length) {
            if (found.lengths == 0 && parse_decimal(line.value, found.length)) { // the usual case
                found.lengths = 1;
                continue;
            }
            // Repetitions that agree are collapsed, in one line or in several (RFC 9110 §8.6).
            list_items items(line.value);
            std::string_view item;
            if (!items.next(item))
                return http_error::upstream_bad_framing;
            do {
                std::uint64_t length = 0;
                if (!parse_decimal(item, length) || (found.lengths++ != 0 && length != found.length))
                    return http_error::upstream_bad_framing;
                found.length = length;
            } while (items.next(item));
        } else if (line.id == field_id::transfer_encoding) {
            ++found.codings;
            found.chunked = equals_ignoring_case(line.value, "chunked");
        }
    }
    if (const auto error = frame_body(found, head.minor_version, out.body); error != http_error::none)
        return http_error::upstream_bad_framing;
    if (const auto error = read_connection(head.fields, direction::response, out.connection); error != http_error::none)
        return http_error::upstream_bad_head;
    if (found.lengths != 0)
        out.declared_length = found.length;

    out.interim = head.status < 200;
    out.reusable = keeps_alive(head.minor_version, out.connection);
    if (out.interim || head.status == 204) {
        // These never have a body (C6). An upstream that announces one may send it: it must not be read as the next
        // answer.
        out.reusable = out.reusable && out.body.kind != body_kind::chunked && out.body.length == 0;
        out.body = {};
        out.declared_length.reset();
    } else if (asked == method_id::head || head.status == 304) {
        out.body = {};
    } else if (out.body.kind == body_kind::none) {
        out.body = {body_kind::until_close, 0};
        out.reusable = false;
    }
    return http_error::none;
}

} // namespace headgate::http
