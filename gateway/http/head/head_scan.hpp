// The strict scan of the raw bytes of a head, before any parser sees them: finds where the head ends and refuses what a
// proxy must not let through (hardening B20 to B24, B26, B29, B30, B32, C13). Pure; resumable; each byte is looked at
// once, however the bytes arrive (A16), and what is refused is refused as soon as its byte is seen.
#pragma once

#include "gateway/http/head/message_head.hpp"

#include <string_view>

namespace headgate::http {

// Both scans: feed the bytes received so far, each time from the same first byte, until the state is not `need_more`.
// The views in `head` are of the buffer of the last call; the caller moves them when the buffer has moved.
class request_scan
{
public:
    // Sets the request line of `head`. Field lines are appended to `keep`, unless it is null.
    parse_state feed(std::string_view received, const head_limits& limits, request_head& head, field_list* keep);
    // Appends to `out` the field lines that a scan without `keep` has passed.
    void split(std::string_view received, const head_limits& limits, field_list& out) const;

    // Whether a byte of a request line was seen.
    bool started() const noexcept { return started_; }
    // Whether the request line was read.
    bool in_fields() const noexcept { return fields_ != 0; }
    http_error error() const noexcept { return error_; }
    // Once done: where the body begins.
    std::size_t consumed() const noexcept { return reader_.offset(); }
    // REQUIRES: the scan is done.
    head_extent extent() const noexcept;

private:
    parse_state skip_empty_lines(std::string_view received);
    parse_state read_request_line(std::string_view received, const head_limits& limits, request_head& head);
    field_block::limits field_limits(const head_limits& limits) const noexcept;
    parse_state fail(http_error error);

    line_reader reader_;
    field_block block_;
    std::size_t first_ = 0;  // offset of the request line
    std::size_t fields_ = 0; // offset of the first field line
    http_error error_ = http_error::none;
    bool started_ = false;
};

class response_scan
{
public:
    // As above.
    parse_state feed(std::string_view received, const head_limits& limits, response_head& head, field_list* keep);
    void split(std::string_view received, const head_limits& limits, field_list& out) const;
    bool in_fields() const noexcept { return fields_ != 0; }
    http_error error() const noexcept { return error_; } // not yet one of the upstream's
    std::size_t consumed() const noexcept { return reader_.offset(); }
    head_extent extent() const noexcept;

private:
    parse_state fail(http_error error);

    line_reader reader_;
    field_block block_;
    std::size_t fields_ = 0;
    http_error error_ = http_error::none;
};

} // namespace headgate::http
