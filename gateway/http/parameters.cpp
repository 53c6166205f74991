#include "gateway/http/parameters.hpp"

#include "gateway/http/text.hpp"

namespace headgate::http {

namespace {

// Removes the next item from `rest` and returns it.
std::string_view next_item(std::string_view& rest, char separator)
{
    const auto end = rest.find(separator);
    const auto item = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    return item;
}

// Removes one byte of a query from `text` and returns it decoded. REQUIRES: `text` is not empty and its escapes are
// complete, which parse_target has checked.
char next_decoded(std::string_view& text)
{
    if (text.front() == '%' && text.size() >= 3) {
        const auto byte = hex_value(text[1]) * 16 + hex_value(text[2]);
        text.remove_prefix(3);
        return static_cast<char>(byte);
    }
    const char c = text.front() == '+' ? ' ' : text.front();
    text.remove_prefix(1);
    return c;
}

bool decodes_to(std::string_view text, std::string_view wanted)
{
    for (const char c : wanted) {
        if (text.empty() || next_decoded(text) != c)
            return false;
    }
    return text.empty();
}

} // namespace

parameter_state find_only_line(const field_list& fields, std::string_view name, std::string_view& value)
{
    auto state = parameter_state::absent;
    for (const auto& line : fields.lines) {
        const bool is_it = line.name == name || equals_ignoring_case(line.name, name); // most clients use the same case
        if (!is_it)
            continue;
        if (state != parameter_state::absent)
            return parameter_state::repeated;
        state = parameter_state::found;
        value = line.value;
    }
    return state;
}

parameter_state find_cookie(const field_list& fields, std::string_view name, std::string_view& value)
{
    if (!fields.has(field_id::cookie))
        return parameter_state::absent;
    auto state = parameter_state::absent;
    for (const auto& line : fields.lines) {
        if (line.id != field_id::cookie)
            continue;
        for (auto rest = line.value; !rest.empty();) {
            const auto pair = trim(next_item(rest, ';'));
            const auto equals = pair.find('=');
            if (equals == std::string_view::npos || trim(pair.substr(0, equals)) != name)
                continue;
            if (state != parameter_state::absent)
                return parameter_state::repeated;
            state = parameter_state::found;
            value = trim(pair.substr(equals + 1));
        }
    }
    return state;
}

parameter_state find_query_parameter(std::string_view query, std::string_view name, byte_buffer& scratch,
                                     std::string_view& value)
{
    if (query.starts_with('?'))
        query.remove_prefix(1);
    auto state = parameter_state::absent;
    std::string_view found;
    while (!query.empty()) {
        const auto pair = next_item(query, '&');
        const auto equals = pair.find('=');
        if (!decodes_to(pair.substr(0, equals), name))
            continue;
        if (state != parameter_state::absent)
            return parameter_state::repeated;
        state = parameter_state::found;
        found = equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
    }
    scratch.clear();
    while (!found.empty())
        scratch.append(next_decoded(found));
    value = scratch.view();
    return state;
}

} // namespace headgate::http
