// Values that must stand once: a header's line, a cookie in Cookie lines, a parameter in a query. Names are compared
// and values taken in their decoded form, so that no spelling is another identity (K5); a name that stands twice is
// said to.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/field_block.hpp"

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

// RFC 6265: name=value pairs between semicolons, over all Cookie lines. Names are case-sensitive, values as they are.
parameter_state find_cookie(const field_list& fields, std::string_view name, std::string_view& value);

// `query` as in the target, with or without its "?". The value, decoded (%XX, and "+" for a space), is in `scratch`.
parameter_state find_query_parameter(std::string_view query, std::string_view name, byte_buffer& scratch,
                                     std::string_view& value);

} // namespace headgate::http
