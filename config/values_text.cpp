// The syntax of texts: names, headers, methods, hosts, paths.
#include "config/values.hpp"

#include <algorithm>

namespace headgate::config {

namespace {

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_token(std::string_view text)
{
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return is_alnum(c) || others.find(c) != std::string_view::npos;
    });
}

bool is_visible(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

// A parameter, {name}, must be a whole segment.
std::string check_param(std::string_view segment)
{
    if (segment.find_first_of("{}") == std::string_view::npos)
        return {};
    const bool whole = segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
    if (!whole || !check_name(segment.substr(1, segment.size() - 2)).empty())
        return "a parameter is a whole segment, such as /users/{id}";
    return {};
}

} // namespace

std::string check_name(std::string_view text)
{
    const bool fits =
        !text.empty() && text.size() <= 64 && is_alnum(text.front()) &&
        std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; });
    return fits ? ""
                : "a name has letters, digits, `_`, `-` and `.`, begins with a letter or digit, and has at most 64 "
                  "characters";
}

std::string check_header_name(std::string_view text)
{
    return is_token(text) && text.size() <= 256 ? "" : "it must be a header name, such as X-API-Key";
}

std::string check_refusal_header(std::string_view text)
{
    constexpr std::string_view framing[] = {"connection", "content-length",    "date",
                                            "keep-alive", "proxy-connection",  "te",
                                            "trailer",    "transfer-encoding", "upgrade"};
    std::string lower(text);
    for (char& c : lower)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    if (std::find(std::begin(framing), std::end(framing), lower) != std::end(framing))
        return "the gateway writes this field itself; remove it";
    if (lower == "retry-after")
        return "the gateway writes this field itself; remove it, or use `retry_jitter` to delay clients";
    if (lower == "content-type")
        return "use `content_type` to set the type of the body";
    return check_header_name(text);
}

std::string check_header_value(std::string_view text)
{
    const bool fits = std::none_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
    });
    return fits ? "" : "a header value must not contain line ends or control characters";
}

std::string check_method(std::string_view text)
{
    if (!is_token(text) || text.size() > 32)
        return "it must be a method, such as GET";
    if (std::any_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
        return "methods are case-sensitive; write them in capitals, such as GET";
    return {};
}

std::string check_host_pattern(std::string_view text)
{
    const char* expected = "it must be a host such as api.example.com, or *.example.com for every name under it";
    if (text.find('/') != std::string_view::npos || text.find(':') != std::string_view::npos)
        return std::string(expected) + ", without scheme, port or path";
    auto name = text;
    if (name.starts_with("*."))
        name.remove_prefix(2);
    const bool fits =
        !name.empty() && name.size() <= 253 && name.front() != '.' && name.front() != '-' &&
        name.find("..") == std::string_view::npos &&
        std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; });
    return fits ? "" : expected;
}

std::string check_host_name(std::string_view text)
{
    return text.starts_with("*") || !check_host_pattern(text).empty()
               ? "it must be a host such as api.example.com, without scheme, port or path"
               : "";
}

std::string check_path_pattern(std::string_view text)
{
    if (!is_visible(text))
        return "a path has no spaces, control or non-ASCII characters; percent-encode them";
    if (text.find_first_of("?#") != std::string_view::npos)
        return "a path pattern has no query and no fragment";
    const auto star = text.find('*');
    if (text.starts_with("*")) {
        const bool fits = text.size() > 1 && text.find_first_of("*{}/", 1) == std::string_view::npos;
        return fits ? "" : "a suffix pattern is `*` and the end of the path, such as *.png";
    }
    if (!text.starts_with("/"))
        return "a path begins with `/`, such as /api/* or /users/{id}";
    if (star != std::string_view::npos && (star + 1 != text.size() || text[star - 1] != '/'))
        return "`*` is allowed only at the end after a `/` (/api/*), or at the beginning (*.png)";
    for (std::size_t i = 1; i <= text.size();) {
        const auto end = std::min(text.find('/', i), text.size());
        const auto segment = text.substr(i, end - i);
        if (segment == "." || segment == "..")
            return "a path pattern has no `.` or `..` segments; requests are matched after they are resolved";
        if (auto complaint = check_param(segment); !complaint.empty())
            return complaint;
        i = end + 1;
    }
    return {};
}

std::string check_path_prefix(std::string_view text)
{
    const bool fits =
        text.starts_with("/") && is_visible(text) && text.find_first_of("?#*{}") == std::string_view::npos;
    return fits ? "" : "it must be the beginning of a path, such as /api";
}

std::string check_content_type(std::string_view text)
{
    const auto slash = text.find('/');
    const auto end = std::min(text.find(';'), text.size());
    const bool fits = slash != std::string_view::npos && slash < end && is_token(text.substr(0, slash)) &&
                      check_header_value(text).empty();
    return fits ? "" : "it must be a media type, such as application/json";
}

} // namespace headgate::config
