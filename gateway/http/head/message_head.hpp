// The head of a request and of a response as views of the bytes it was received in, and the limits it is held to.
#pragma once

#include "gateway/http/head/field_block.hpp"
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

// What the scan found of a head whose last byte has arrived. Offsets are in the bytes that were scanned.
struct head_extent
{
    std::size_t first = 0;       // where the start line begins
    std::size_t fields = 0;      // where the first field line begins
    std::size_t end = 0;         // behind the empty line
    std::size_t field_count = 0; // field lines
    bool underscores = false;    // a field name has a "_" in it
};

} // namespace headgate::http
