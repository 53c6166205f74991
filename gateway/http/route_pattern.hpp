// What a route matches, as written in the configuration, and the parts of its path. Checked at start-up; strings are
// fine here.
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
    std::optional<std::string> value; // absent: the header only has to be there
};

struct route_pattern
{
    std::vector<std::string> hosts; // "api.example.com", "*.example.com" (any depth), "*"; none means any
    // "/a/b" exactly; "/users/{id}" one non-empty segment; "/api/*" everything below, and "/api" itself so that leaving
    // out the slash dodges nothing; "/static/*.css" everything below that ends so; "", "*" and "/*" everything.
    std::string path;
    bool ignore_trailing_slash = false; // an exact path also matches with one slash more
    std::vector<std::string> methods;   // none means any; HEAD is not implied by GET
    std::vector<header_match> headers;  // all of them
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

// Empty when the path cannot be matched; `find_problem` says why.
std::optional<path_shape> parse_path_pattern(std::string_view path);

// What is wrong with a pattern, in words for the person who wrote it; empty when nothing is.
std::string find_problem(const route_pattern& pattern);

} // namespace headgate::http
