// The options of a Connection header, and the fields that it declares hop-by-hop (RFC 9110 §7.6.1).
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/head/field_block.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headgate::http {

struct connection_options
{
    bool close = false;
    bool keep_alive = false;
    bool upgrade = false;
    std::uint8_t count = 0;
    std::array<std::string_view, 16> names; // named fields that are not always hop-by-hop

    std::span<const std::string_view> nominated() const noexcept { return {names.data(), count}; }
    bool nominates(std::string_view field_name) const noexcept;
    void clear() noexcept // does not write to the names
    {
        close = keep_alive = upgrade = false;
        count = 0;
    }
};

enum class direction : std::uint8_t
{
    request, // naming a protected field would remove it: refused (C1)
    response // an upstream may not remove one either; the name is ignored
};

// Reads all Connection lines. Returns `bad_connection` for a non-token, a protected name in a request, or too many
// names.
http_error read_connection(const field_list& fields, direction from, connection_options& out);

} // namespace headgate::http
