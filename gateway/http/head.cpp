#include "gateway/http/head.hpp"

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

} // namespace

parse_state request_parser::feed(std::string_view received)
{
    if (state_ != parse_state::need_more || received.empty())
        return state_;
    moved_to(received.data());
    if (!in_fields_) {
        const auto state = read_request_line(received);
        if (state != parse_state::done)
            return state;
        in_fields_ = true;
    }
    const field_block::limits limits{.end = first_ + limits_.head,
                                     .lines = limits_.fields,
                                     .too_large = http_error::head_too_large,
                                     .too_many = http_error::too_many_fields,
                                     .refuse_imitations = true};
    state_ = block_.feed(received, reader_, limits, head_.fields);
    error_ = block_.error();
    return state_;
}

parse_state request_parser::skip_empty_lines(std::string_view received)
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

parse_state request_parser::read_request_line(std::string_view received)
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
    const auto limit =
        first_ + std::min(limits_.request_line + 2, limits_.head); // a head is never larger than its limit
    const auto state = reader_.next(received, limit, http_error::request_line_too_long, line);
    if (state == parse_state::failed)
        return fail(reader_.error());
    if (state == parse_state::done)
        if (const auto error = take_request_line(line); error != http_error::none)
            return fail(error);
    return state;
}

// method SP request-target SP HTTP-version, one space each (B24-B26). Which targets are good is target.hpp's matter.
http_error request_parser::take_request_line(std::string_view line)
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
    head_.method = line.substr(0, method_end);
    head_.method_number = find_method(head_.method);
    head_.target = rest.substr(0, space);
    return read_version(rest.substr(space + 1), head_.minor_version);
}

parse_state request_parser::fail(http_error error)
{
    error_ = error;
    return state_ = parse_state::failed;
}

void request_parser::moved_to(const char* base) noexcept
{
    if (base == base_)
        return;
    if (in_fields_) {
        head_.method = rebase(head_.method, address_of(base_), base);
        head_.target = rebase(head_.target, address_of(base_), base);
        rebase(head_.fields, address_of(base_), base);
    }
    base_ = base;
}

void request_parser::reset() noexcept
{
    head_.method = head_.target = {};
    head_.method_number = method_id::other; // the answer to a broken line must not look like one to HEAD
    head_.minor_version = 1;
    head_.fields.clear();
    reader_.restart(0);
    block_ = {};
    base_ = nullptr;
    first_ = 0;
    state_ = parse_state::need_more;
    error_ = http_error::none;
    started_ = in_fields_ = false;
}

parse_state response_parser::feed(std::string_view received)
{
    if (state_ != parse_state::need_more || received.empty())
        return state_;
    moved_to(received.data());
    if (!in_fields_) {
        // An upstream that speaks something else is noticed before it sends a line.
        constexpr std::string_view opening = "HTTP/1.";
        if (!opening.starts_with(received.substr(0, opening.size())))
            return fail(http_error::upstream_bad_head);
        std::string_view line;
        const auto state = reader_.next(received, limits_.head, http_error::head_too_large, line);
        if (state == parse_state::need_more)
            return state;
        const auto error = state == parse_state::failed ? reader_.error() : take_status_line(line);
        if (error != http_error::none)
            return fail(error);
        in_fields_ = true;
    }
    const field_block::limits limits{.end = limits_.head,
                                     .lines = limits_.fields,
                                     .too_large = http_error::head_too_large,
                                     .too_many = http_error::too_many_fields,
                                     .refuse_imitations = false};
    const auto state = block_.feed(received, reader_, limits, head_.fields);
    return state == parse_state::failed ? fail(block_.error()) : state_ = state;
}

// HTTP-version SP 3DIGIT [SP reason]. The space before an empty reason is often left out, and nothing hangs on it.
http_error response_parser::take_status_line(std::string_view line)
{
    if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' '))
        return http_error::upstream_bad_head;
    if (const auto error = read_version(line.substr(0, 8), head_.minor_version); error != http_error::none)
        return error;
    head_.status = 0;
    for (const char c : line.substr(9, 3)) {
        if (!is_digit(c))
            return http_error::upstream_bad_head;
        head_.status = head_.status * 10 + static_cast<unsigned>(c - '0');
    }
    head_.reason = line.size() > 13 ? line.substr(13) : std::string_view{};
    return head_.status < 100 ? http_error::upstream_bad_head : http_error::none;
}

parse_state response_parser::fail(http_error error)
{
    error_ = as_upstream_error(error);
    return state_ = parse_state::failed;
}

void response_parser::moved_to(const char* base) noexcept
{
    if (base == base_)
        return;
    if (in_fields_) {
        head_.reason = rebase(head_.reason, address_of(base_), base);
        rebase(head_.fields, address_of(base_), base);
    }
    base_ = base;
}

void response_parser::reset() noexcept
{
    head_.reason = {};
    head_.fields.clear();
    reader_.restart(0);
    block_ = {};
    base_ = nullptr;
    state_ = parse_state::need_more;
    error_ = http_error::none;
    in_fields_ = false;
}

} // namespace headgate::http
