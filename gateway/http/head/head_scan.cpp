#include "gateway/http/head/head_scan.hpp"

#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

namespace {

// RFC 9112 §2.2 wants at least one CR LF before a request line ignored: some clients send one after a body.
constexpr std::size_t empty_lines_allowed = 2;

constexpr char tls_handshake = 0x16;

// "HTTP/1.0" or "HTTP/1.1", else which of the two ways it is wrong (B26).
http_error read_version(std::string_view text, unsigned& minor)
{
    if (text.size() != 8 || !text.starts_with("HTTP/") || !is_digit(text[5]) || text[6] != '.' || !is_digit(text[7]))
        return http_error::bad_version;
    if (text[5] != '1' || text[7] > '1')
        return http_error::unsupported_version;
    minor = static_cast<unsigned>(text[7] - '0');
    return http_error::none;
}

// method SP request-target SP HTTP-version, one space each (B24-B26). target.hpp decides which targets are good.
http_error take_request_line(std::string_view line, request_head& head)
{
    if (line == "PRI * HTTP/2.0")
        return http_error::http2_preface;
    std::size_t method_end = 0;
    while (method_end < line.size() && is_token_byte(line[method_end]))
        ++method_end;
    if (method_end == line.size())
        return http_error::bad_request_line;
    if (line[method_end] != ' ')
        return http_error::bad_method;
    const auto rest = line.substr(method_end + 1);
    const auto space = rest.find(' ');
    if (space == 0 || space == std::string_view::npos) // HTTP/0.9 has no version
        return http_error::bad_request_line;
    head.method = line.substr(0, method_end);
    head.method_number = find_method(head.method);
    head.target = rest.substr(0, space);
    return read_version(rest.substr(space + 1), head.minor_version);
}

// HTTP-version SP 3DIGIT [SP reason]. The space before an empty reason is often left out, and nothing depends on it.
http_error take_status_line(std::string_view line, response_head& head)
{
    if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' '))
        return http_error::upstream_bad_head;
    if (const auto error = read_version(line.substr(0, 8), head.minor_version); error != http_error::none)
        return error;
    head.status = 0;
    for (const char c : line.substr(9, 3)) {
        if (!is_digit(c))
            return http_error::upstream_bad_head;
        head.status = head.status * 10 + static_cast<unsigned>(c - '0');
    }
    head.reason = line.size() > 13 ? line.substr(13) : std::string_view{};
    return head.status < 100 ? http_error::upstream_bad_head : http_error::none;
}

// Reads again the field lines in received[begin, end), which the same limits have already been applied to.
void split_lines(std::string_view received, std::size_t begin, std::size_t end, const field_block::limits& limits,
                 field_list& out)
{
    line_reader reader;
    reader.restart(begin);
    field_block block;
    block.feed(received.substr(0, end), reader, limits, &out); // stops where the scan stopped
}

field_block::limits response_field_limits(const head_limits& limits)
{
    return {.end = limits.head,
            .lines = limits.fields,
            .too_large = http_error::head_too_large,
            .too_many = http_error::too_many_fields,
            .refuse_imitations = false};
}

} // namespace

parse_state request_scan::feed(std::string_view received, const head_limits& limits, request_head& head,
                               field_list* keep)
{
    if (!in_fields()) {
        const auto state = read_request_line(received, limits, head);
        if (state != parse_state::done)
            return state;
        fields_ = reader_.offset();
    }
    const auto state = block_.feed(received, reader_, field_limits(limits), keep);
    error_ = block_.error();
    return state;
}

void request_scan::split(std::string_view received, const head_limits& limits, field_list& out) const
{
    if (in_fields())
        split_lines(received, fields_, reader_.offset(), field_limits(limits), out);
}

field_block::limits request_scan::field_limits(const head_limits& limits) const noexcept
{
    return {.end = first_ + limits.head,
            .lines = limits.fields,
            .too_large = http_error::head_too_large,
            .too_many = http_error::too_many_fields,
            .refuse_imitations = true};
}

head_extent request_scan::extent() const noexcept
{
    return {first_, fields_, reader_.offset(), block_.count(), block_.saw_underscore()};
}

parse_state request_scan::skip_empty_lines(std::string_view received)
{
    while (first_ < received.size() && received[first_] == '\r') {
        if (first_ + 1 == received.size())
            return parse_state::need_more;
        if (received[first_ + 1] != '\n')
            return fail(http_error::bare_line_end);
        if (first_ == empty_lines_allowed * 2)
            return fail(http_error::bad_request_line);
        first_ += 2;
    }
    reader_.restart(first_);
    return first_ == received.size() ? parse_state::need_more : parse_state::done;
}

parse_state request_scan::read_request_line(std::string_view received, const head_limits& limits, request_head& head)
{
    if (!started_) {
        if (const auto state = skip_empty_lines(received); state != parse_state::done)
            return state;
        started_ = true;
        // Seen in the first byte, so that a TLS client is not left waiting for us to read a whole line.
        const char first = received[first_];
        if (first == tls_handshake)
            return fail(http_error::tls_on_plain_port);
        if (!is_token_byte(first))
            return fail(first == '\n' ? http_error::bare_line_end : http_error::bad_request_line);
    }
    std::string_view line;
    const auto limit = first_ + std::min(limits.request_line + 2, limits.head); // a head is never larger than its limit
    const auto state = reader_.next(received, limit, http_error::request_line_too_long, line);
    if (state == parse_state::failed)
        return fail(reader_.error());
    if (state == parse_state::done)
        if (const auto error = take_request_line(line, head); error != http_error::none)
            return fail(error);
    return state;
}

parse_state request_scan::fail(http_error error)
{
    error_ = error;
    return parse_state::failed;
}

parse_state response_scan::feed(std::string_view received, const head_limits& limits, response_head& head,
                                field_list* keep)
{
    if (!in_fields()) {
        // An upstream that speaks something else is noticed before it sends a line.
        constexpr std::string_view opening = "HTTP/1.";
        if (!opening.starts_with(received.substr(0, opening.size())))
            return fail(http_error::upstream_bad_head);
        std::string_view line;
        const auto state = reader_.next(received, limits.head, http_error::head_too_large, line);
        if (state == parse_state::need_more)
            return state;
        const auto error = state == parse_state::failed ? reader_.error() : take_status_line(line, head);
        if (error != http_error::none)
            return fail(error);
        fields_ = reader_.offset();
    }
    const auto state = block_.feed(received, reader_, response_field_limits(limits), keep);
    error_ = block_.error();
    return state;
}

void response_scan::split(std::string_view received, const head_limits& limits, field_list& out) const
{
    if (in_fields())
        split_lines(received, fields_, reader_.offset(), response_field_limits(limits), out);
}

head_extent response_scan::extent() const noexcept
{
    return {0, fields_, reader_.offset(), block_.count(), block_.saw_underscore()};
}

parse_state response_scan::fail(http_error error)
{
    error_ = error;
    return parse_state::failed;
}

} // namespace headgate::http
