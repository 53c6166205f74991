// Heads of requests and responses: fed with the growing read buffer, they become views of it (method, target, fields).
// Strict where a proxy must be (hardening B20-B26, B30, B32, C13); what the fields mean is decided in framing.hpp.
// Not Beast's parser: docs/decisions/0002-head-parser.md says why.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/field_block.hpp"
#include "gateway/http/methods.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

struct head_limits
{
    std::size_t request_line = 8192; // without CR LF; 414
    std::size_t head = 65536;        // from the request line to the empty line; 431
    std::size_t fields = 100;        // 431
};

struct request_head
{
    std::string_view method;
    std::string_view target; // as received
    method_id method_number = method_id::other;
    unsigned minor_version = 1; // HTTP/1.<minor>, 0 or 1
    field_list fields;
};

struct response_head
{
    unsigned status = 0;
    std::string_view reason;
    unsigned minor_version = 1;
    field_list fields;
};

// Feed it the bytes received so far, each time from the same first byte (the buffer may have moved and grown), until it
// is done or has failed. All views are of the buffer of the last call. After `reset` it is ready for the next head; a
// parser that is reused allocates nothing.
class request_parser
{
public:
    explicit request_parser(const head_limits& limits = {}) : limits_(limits) {}
    void set_limits(const head_limits& limits) noexcept { limits_ = limits; } // before the first byte

    parse_state feed(std::string_view received);

    const request_head& head() const noexcept { return head_; }
    std::size_t consumed() const noexcept { return reader_.offset(); } // once done: where the body begins
    http_error error() const noexcept { return error_; }
    // Whether a byte of a request line was seen: silence on an idle connection is not a slow head.
    bool started() const noexcept { return started_; }
    void reset() noexcept;
    // The buffer moved after the head was done.
    void moved_to(const char* base) noexcept;

private:
    parse_state skip_empty_lines(std::string_view received);
    parse_state read_request_line(std::string_view received);
    http_error take_request_line(std::string_view line);
    parse_state fail(http_error error);

    head_limits limits_;
    request_head head_;
    line_reader reader_;
    field_block block_;
    const char* base_ = nullptr;
    std::size_t first_ = 0; // offset of the request line
    parse_state state_ = parse_state::need_more;
    http_error error_ = http_error::none;
    bool started_ = false;
    bool in_fields_ = false;
};

// As above; every error is one of the upstream's.
class response_parser
{
public:
    explicit response_parser(const head_limits& limits = {}) : limits_(limits) {}

    parse_state feed(std::string_view received);

    const response_head& head() const noexcept { return head_; }
    std::size_t consumed() const noexcept { return reader_.offset(); }
    http_error error() const noexcept { return error_; }
    void reset() noexcept;
    void moved_to(const char* base) noexcept;

private:
    http_error take_status_line(std::string_view line);
    parse_state fail(http_error error);

    head_limits limits_;
    response_head head_;
    line_reader reader_;
    field_block block_;
    const char* base_ = nullptr;
    parse_state state_ = parse_state::need_more;
    http_error error_ = http_error::none;
    bool in_fields_ = false;
};

} // namespace headgate::http
