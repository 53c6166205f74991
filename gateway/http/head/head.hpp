// Heads of requests and responses: fed with the growing read buffer, they become views of it (method, target, fields).
// Strict where a proxy must be. In this order: head_scan.hpp finds the end of the head and refuses what must not be let
// through; then Boost.Beast parses exactly that head, once; what the fields mean is decided in framing.hpp. A head that
// Beast does not read as the scan has seen it is refused.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/head/head_scan.hpp"
#include "gateway/http/head/message_head.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

// Feed it the bytes received so far, each time from the same first byte (the buffer may have moved and grown), until it
// is done or has failed. All views are of the buffer of the last call. After `reset` it is ready for the next head; a
// parser that is reused allocates nothing.
//
// `done` means that the head has no error in its bytes. frame_request and parse_target must still be called: a head
// that Beast refuses because of what its fields or its target mean is left to them, and they refuse it too.
class request_parser
{
public:
    explicit request_parser(const head_limits& limits = {}) : limits_(limits) {}
    void set_limits(const head_limits& limits) noexcept { limits_ = limits; } // before the first byte

    parse_state feed(std::string_view received);

    // Until done: what has been read so far, for the log and for the answer to a broken request.
    const request_head& head() const noexcept { return head_; }
    std::size_t consumed() const noexcept { return scan_.consumed(); } // once done: where the body begins
    http_error error() const noexcept { return error_; }
    // Whether a byte of a request line was seen: silence on an idle connection is not a slow head.
    bool started() const noexcept { return scan_.started(); }
    void reset() noexcept;
    // The buffer moved after the head was done.
    void moved_to(const char* base) noexcept;

private:
    parse_state parse(std::string_view received);

    head_limits limits_;
    request_head head_;
    request_scan scan_;
    const char* base_ = nullptr;
    parse_state state_ = parse_state::need_more;
    http_error error_ = http_error::none;
    bool in_pieces_ = false; // the scan keeps the fields of an incomplete head
};

// As above, with frame_response; every error is one of the upstream's.
class response_parser
{
public:
    explicit response_parser(const head_limits& limits = {}) : limits_(limits) {}

    parse_state feed(std::string_view received);

    const response_head& head() const noexcept { return head_; }
    std::size_t consumed() const noexcept { return scan_.consumed(); }
    http_error error() const noexcept { return error_; }
    void reset() noexcept;
    void moved_to(const char* base) noexcept;

private:
    parse_state parse(std::string_view received);

    head_limits limits_;
    response_head head_;
    response_scan scan_;
    const char* base_ = nullptr;
    parse_state state_ = parse_state::need_more;
    http_error error_ = http_error::none;
    bool in_pieces_ = false;
};

} // namespace headgate::http
