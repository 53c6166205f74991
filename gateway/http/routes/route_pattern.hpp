// What a route matches, as in the configuration, and the parts of its path. Used only when a configuration is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::http {

inline constexpr std::size_t max_captures = 16;

struct header_match
{
    std::string name;
    std::optional<std::string> value; // none: the header only has to be present
};

struct route_pattern
{
    std::vector<std::string> hosts; // "api.example.com", "*.example.com" (any depth), "*"; none means any
    // "/a/b" matches exactly; "/users/{id}" one non-empty segment; "/api/*" everything below, and "/api" itself, so
    // that omitting the slash evades no limit; "/static/*.css" everything below with this ending; "", "*" and "/*"
    // everything.
    std::string path;
    bool ignore_trailing_slash = false; // an exact path also matches with one more slash
    std::vector<std::string> methods;   // none means any; HEAD is not implied by GET
    std::vector<header_match> headers;  // all must match
};

struct path_segment
{
    std::string text; // canonical spelling of a literal, or the name of a parameter
    bool is_parameter = false;
};

struct path_shape
{
    enum class ending : std::uint8_t
    {
        exact,
        below, // "/*"
        suffix // "/*.css"
    };
    std::vector<path_segment> segments;
    ending end = ending::exact;
    std::string suffix;
};

// Parses a path. Returns nothing when it is malformed; `find_problem` returns why.
std::optional<path_shape> parse_path_pattern(std::string_view path);

// Returns the problem of a pattern as text for the configuration's author; empty when there is none.
std::string find_problem(const route_pattern& pattern);

} // namespace headgate::http
