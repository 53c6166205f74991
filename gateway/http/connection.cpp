#include "gateway/http/connection.hpp"

#include "gateway/http/text.hpp"

namespace headgate::http {

namespace {

// Returns whether a field is removed between hops even if Connection does not name it.
constexpr bool always_hop_by_hop(field_id id)
{
    using enum field_id;
    return (bit(id) & (bit(keep_alive) | bit(proxy_authenticate) | bit(proxy_authorization) | bit(proxy_connection) |
                       bit(te) | bit(trailer) | bit(http2_settings))) != 0;
}

http_error add_option(std::string_view option, direction from, connection_options& out)
{
    if (!is_token(option))
        return http_error::bad_connection;
    if (equals_ignoring_case(option, "close")) {
        out.close = true;
        return http_error::none;
    }
    const auto id = find_field_id(option);
    if (id == field_id::keep_alive)
        out.keep_alive = true;
    if (id == field_id::upgrade)
        out.upgrade = true;
    if (id == field_id::upgrade || always_hop_by_hop(id))
        return http_error::none;
    if (is_protected(id) || imitates_protected_field(option))
        return from == direction::request ? http_error::bad_connection : http_error::none;
    if (out.count == out.names.size())
        return http_error::bad_connection;
    out.names[out.count++] = option;
    return http_error::none;
}

} // namespace

bool connection_options::nominates(std::string_view field_name) const noexcept
{
    for (const auto name : nominated())
        if (equals_ignoring_case(name, field_name))
            return true;
    return false;
}

http_error read_connection(const field_list& fields, direction from, connection_options& out)
{
    out.clear();
    if (!fields.has(field_id::connection))
        return http_error::none;
    for (const auto& line : fields.lines) {
        if (line.id != field_id::connection)
            continue;
        list_items items(line.value);
        for (std::string_view item; items.next(item);)
            if (const auto error = add_option(item, from, out); error != http_error::none)
                return error;
    }
    return http_error::none;
}

} // namespace headgate::http
