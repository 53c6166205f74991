// Finds values that may occur only once: a header's line, a cookie in Cookie lines, a parameter in a query. Names and
// values are decoded first, so that different spellings are the same identity (K5); a name that occurs twice is
// reported as `repeated`.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/head/field_block.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class parameter_state : std::uint8_t
{
    absent,
    found,
    repeated
};

parameter_state find_only_line(const field_list& fields, std::string_view name, std::string_view& value);

// Finds a cookie: name=value pairs between semicolons, in all Cookie lines (RFC 6265). Names are case-sensitive; values
// are not decoded.
parameter_state find_cookie(const field_list& fields, std::string_view name, std::string_view& value);

// Finds a parameter. `query` is that of the target, with or without its "?". The decoded value (%XX, and "+" for a
// space) is in `scratch`.
parameter_state find_query_parameter(std::string_view query, std::string_view name, byte_buffer& scratch,
                                     std::string_view& value);

} // namespace headgate::http
