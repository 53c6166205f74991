#include "gateway/http/head/head.hpp"

#include "gateway/http/framing.hpp"
#include "gateway/http/head/beast_head.hpp"
#include "gateway/http/target.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace headgate::http {

namespace {

void move_views(request_head& head, const char* from, const char* to)
{
    head.method = rebase(head.method, address_of(from), to);
    head.target = rebase(head.target, address_of(from), to);
    rebase(head.fields, address_of(from), to);
}

void move_views(response_head& head, const char* from, const char* to)
{
    head.reason = rebase(head.reason, address_of(from), to);
    rebase(head.fields, address_of(from), to);
}

bool is_refused_later(const request_head& head)
{
    request_framing framing;
    request_target target;
    return frame_request(head, UINT64_MAX, framing) != http_error::none ||
           parse_target(head.method_number, head.target, target) != http_error::none;
}

bool is_refused_later(const response_head& head)
{
    response_framing framing;
    return frame_response(method_id::get, head, framing) != http_error::none;
}

// Beast reads the values of these fields and fails on some that framing.hpp admits, such as `Content-Length: 5, , 5`
// from an upstream or `Proxy-Connection: a b`. Since framing has judged them, Beast is given a copy of the head with
// zeros in their place, which it takes in every one of them.
bool is_read_by_beast(field_id id)
{
    using enum field_id;
    return (bit(id) & (bit(connection) | bit(content_length) | bit(proxy_connection) | bit(transfer_encoding))) != 0;
}

template <class Head>
bool parse_without_values(std::string_view received, const head_extent& where, Head& head)
{
    std::string copy(received.substr(0, where.end));
    for (const auto& line : head.fields.lines)
        if (is_read_by_beast(line.id) && !line.value.empty())
            std::fill_n(copy.data() + (line.value.data() - received.data()), line.value.size(), '0');
    Head parsed = head;
    if (!parse_with_beast(copy, where, parsed))
        return false;
    move_views(parsed, copy.data(), received.data());
    head = std::move(parsed);
    return true;
}

// Returns whether `head` may go on to framing, with the fields that Beast has read, or with those of the scan if
// framing or the target's parser will refuse it: then the client is given their reason and not Beast's.
template <class Scan, class Head>
bool parse_scanned(std::string_view received, const head_limits& limits, const Scan& scan, Head& head)
{
    const auto where = scan.extent();
    if (parse_with_beast(received, where, head))
        return true;
    head.fields.clear();
    scan.split(received, limits, head.fields);
    return is_refused_later(head) || parse_without_values(received, where, head);
}

} // namespace

parse_state request_parser::feed(std::string_view received)
{
    if (state_ != parse_state::need_more || received.empty())
        return state_;
    moved_to(received.data());
    state_ = scan_.feed(received, limits_, head_, in_pieces_ ? &head_.fields : nullptr);
    error_ = scan_.error();
    if (state_ == parse_state::done)
        return parse(received);
    if (!in_pieces_ && scan_.in_fields()) {
        in_pieces_ = true;
        scan_.split(received, limits_, head_.fields);
    }
    return state_;
}

parse_state request_parser::parse(std::string_view received)
{
    if (!parse_scanned(received, limits_, scan_, head_)) {
        error_ = http_error::bad_header;
        state_ = parse_state::failed;
    }
    return state_;
}

void request_parser::moved_to(const char* base) noexcept
{
    if (base == base_)
        return;
    move_views(head_, base_, base);
    base_ = base;
}

void request_parser::reset() noexcept
{
    head_.method = head_.target = {};
    head_.method_number = method_id::other; // the answer to a broken line must not look like one to HEAD
    head_.minor_version = 1;
    head_.fields.clear();
    scan_ = {};
    base_ = nullptr;
    state_ = parse_state::need_more;
    error_ = http_error::none;
    in_pieces_ = false;
}

parse_state response_parser::feed(std::string_view received)
{
    if (state_ != parse_state::need_more || received.empty())
        return state_;
    moved_to(received.data());
    state_ = scan_.feed(received, limits_, head_, in_pieces_ ? &head_.fields : nullptr);
    if (state_ == parse_state::failed)
        error_ = as_upstream_error(scan_.error());
    if (state_ == parse_state::done)
        return parse(received);
    if (!in_pieces_ && scan_.in_fields()) {
        in_pieces_ = true;
        scan_.split(received, limits_, head_.fields);
    }
    return state_;
}

parse_state response_parser::parse(std::string_view received)
{
    if (!parse_scanned(received, limits_, scan_, head_)) {
        error_ = http_error::upstream_bad_head;
        state_ = parse_state::failed;
    }
    return state_;
}

void response_parser::moved_to(const char* base) noexcept
{
    if (base == base_)
        return;
    move_views(head_, base_, base);
    base_ = base;
}

void response_parser::reset() noexcept
{
    head_.reason = {};
    head_.fields.clear();
    scan_ = {};
    base_ = nullptr;
    state_ = parse_state::need_more;
    error_ = http_error::none;
    in_pieces_ = false;
}

} // namespace headgate::http
