#include "gateway/http/key_value.hpp"

#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

namespace {

constexpr std::size_t longest_value = 256;

// Returns how many bytes of RFC 3986's unreserved set the text begins with: letters, digits, "-", ".", "_", "~". Most
// values have no others.
std::size_t count_unreserved(std::string_view text)
{
    std::size_t n = 0;
    while (n < text.size() && is_class(text[n], detail::unreserved_byte))
        ++n;
    return n;
}

reading if_valid(std::string_view value)
{
    const bool is_valid =
        !value.empty() && value.size() <= longest_value &&
        std::all_of(value.begin(), value.end(), [](char c) { return is_class(c, detail::text_byte); });
    return is_valid ? reading::present : reading::malformed;
}

reading to_reading(parameter_state state)
{
    switch (state) {
    case parameter_state::absent:
        return reading::absent;
    case parameter_state::repeated:
        return reading::malformed;
    case parameter_state::found:
        break;
    }
    return reading::present;
}

reading read_parameter(parameter_state state, std::string_view value)
{
    const auto found = to_reading(state);
    return found == reading::present ? if_valid(value) : found;
}

} // namespace

reading read_line(const field_list& fields, std::string_view name, std::string_view& value)
{
    return to_reading(find_only_line(fields, name, value));
}

reading read_header(const field_list& fields, std::string_view name, std::string_view& value)
{
    if (const auto found = read_line(fields, name, value); found != reading::present)
        return found;
    if (count_unreserved(value) == value.size()) // visible, and valid if there is any
        return !value.empty() && value.size() <= longest_value ? reading::present : reading::malformed;
    const bool visible = std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    return visible ? if_valid(value) : reading::malformed;
}

reading read_cookie(const field_list& fields, std::string_view name, std::string_view& value)
{
    const auto state = find_cookie(fields, name, value);
    if (state == parameter_state::found && value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2); // the quotes are not a part of it (RFC 6265 §4.1.1)
    return read_parameter(state, value);
}

reading read_query(std::string_view query, std::string_view name, byte_buffer& scratch, std::string_view& value)
{
    return read_parameter(find_query_parameter(query, name, scratch, value), value);
}

reading read_path_parameter(const route_match& match, std::string_view name, std::string_view& value)
{
    for (const auto& parameter : match.params()) {
        if (parameter.name != name)
            continue;
        value = parameter.value;
        return if_valid(value);
    }
    return reading::absent;
}

void append_escaped(byte_buffer& out, std::string_view text)
{
    constexpr char digits[] = "0123456789ABCDEF";
    const auto plain = count_unreserved(text);
    out.append(text.substr(0, plain));
    for (const char c : text.substr(plain)) {
        if (is_class(c, detail::unreserved_byte)) {
            out.append(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            const char escaped[] = {'%', digits[byte >> 4], digits[byte & 15]};
            out.append(std::string_view(escaped, 3));
        }
    }
}

} // namespace headgate::http
