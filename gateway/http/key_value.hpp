// Reads the value of one source of a key from a request, strictly: one line or parameter, not empty, not too long, of
// bytes that it may have (K6). Pure.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/head/field_block.hpp"
#include "gateway/http/parameters.hpp"
#include "gateway/http/routes/router.hpp"

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class reading : std::uint8_t
{
    absent,
    present,
    malformed,
    invalid // an invalid token, if the configuration refuses those
};

// Reads the only line of a field, with any bytes.
reading read_line(const field_list& fields, std::string_view name, std::string_view& value);
// Reads a credential: one line of visible ASCII.
reading read_header(const field_list& fields, std::string_view name, std::string_view& value);
reading read_cookie(const field_list& fields, std::string_view name, std::string_view& value);
// Reads a parameter of the query. `value` views the query or `scratch`.
reading read_query(std::string_view query, std::string_view name, byte_buffer& scratch, std::string_view& value);
// Reads a parameter of the route's path, in its canonical spelling.
reading read_path_parameter(const route_match& match, std::string_view name, std::string_view& value);

// Appends the text with all bytes outside RFC 3986's unreserved set as %XX; "%", "," and "=" are among those.
void append_escaped(byte_buffer& out, std::string_view text);

} // namespace headgate::http
