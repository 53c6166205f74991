#include "gateway/http/routes/route_pattern.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/target.hpp"
#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

namespace {

bool is_parameter(std::string_view segment)
{
    return segment.size() > 2 && segment.front() == '{' && segment.back() == '}' &&
           segment.find_first_of("{}", 1) == segment.size() - 1;
}

bool has_whole_escapes(std::string_view text)
{
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '%' && (i + 2 >= text.size() || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0))
            return false;
    return true;
}

// Adds a literal in canonical spelling, because requests are matched in canonical spelling.
bool add_literal(std::string_view text, path_shape& shape)
{
    if (!has_whole_escapes(text) || text.find_first_of("{}*?#\\") != std::string_view::npos)
        return false;
    byte_buffer scratch;
    const auto slashed = "/" + std::string(text);
    const auto canonical = normalise_path(slashed, {.merge_slashes = false}, scratch);
    if (text == "." || text == ".." || (canonical.size() < 2) != text.empty())
        return false;
    shape.segments.push_back({std::string(canonical.substr(1)), false});
    return true;
}

bool is_host_pattern(std::string_view host)
{
    if (host == "*")
        return true;
    if (host.starts_with("*."))
        host.remove_prefix(2);
    const auto parsed = parse_host(host);
    return parsed && !parsed->port;
}

} // namespace

std::optional<path_shape> parse_path_pattern(std::string_view path)
{
    path_shape shape;
    if (path.empty() || path == "*")
        path = "/*";
    if (path.front() != '/')
        return std::nullopt;
    for (std::size_t begin = 1; begin <= path.size();) {
        const auto end = std::min(path.find('/', begin), path.size());
        const auto segment = path.substr(begin, end - begin);
        begin = end + 1;
        if (segment.starts_with('*')) {
            shape.suffix = segment.substr(1);
            shape.end = segment.size() == 1 ? path_shape::ending::below : path_shape::ending::suffix;
            const bool plain = shape.suffix.find_first_of("{}*?#\\%") == std::string::npos;
            return end == path.size() && plain ? std::optional(std::move(shape)) : std::nullopt;
        }
        if (is_parameter(segment))
            shape.segments.push_back({std::string(segment.substr(1, segment.size() - 2)), true});
        else if (!add_literal(segment, shape))
            return std::nullopt;
    }
    return shape;
}

std::string find_problem(const route_pattern& pattern)
{
    for (const auto& host : pattern.hosts)
        if (!is_host_pattern(host))
            return "host '" + host + "' is neither a name, '*.name' nor '*' (a port is not part of it)";
    const auto shape = parse_path_pattern(pattern.path);
    if (!shape)
        return "path '" + pattern.path +
               "' must begin with '/', with '*' only in the last segment, {name} as a whole segment, and no '.' "
               "segments";
    const auto captures = std::count_if(shape->segments.begin(), shape->segments.end(),
                                        [](const path_segment& segment) { return segment.is_parameter; });
    if (static_cast<std::size_t>(captures) > max_captures)
        return "path '" + pattern.path + "' has more than 16 parameters";
    for (const auto& method : pattern.methods)
        if (!is_token(method))
            return "method '" + method + "' is not a token";
    for (const auto& header : pattern.headers)
        if (!is_token(header.name))
            return "header '" + header.name + "' is not a token";
    return {};
}

} // namespace headgate::http
