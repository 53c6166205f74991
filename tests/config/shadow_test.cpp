// Which routes are reported as unreachable.
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

bool second_is_shadowed(const std::string& first, const std::string& second)
{
    const auto result = load("listeners: [ { address: 127.0.0.1:0 } ]\nupstreams: { demo: { echo: true } }\nroutes:\n"
                             "  - { name: a, match: { " +
                             first +
                             " }, upstream: demo }\n"
                             "  - { name: b, match: { " +
                             second + " }, upstream: demo }\n");
    CHECK(!has_errors(result.problems));
    for (const auto& p : result.problems)
        CHECK(p.path == "routes[1]");
    return !result.problems.empty();
}

} // namespace

TEST_CASE("a route is shadowed when an earlier one matches all of its requests")
{
    const std::pair<const char*, const char*> shadowed[] = {
        {"", "path: /a"},
        {"path: /*", "path: /a/b"},
        {"path: /a", "path: /a"},
        {"path: /api/*", "path: /api/users/*"},
        {"path: /api/*", "path: /api"},
        {"path: '/users/{id}'", "path: /users/me"},
        {"path: '/users/{id}'", "path: '/users/{name}'"},
        {"path: '/{a}/x'", "path: /b/x"},
        {"path: '*.png'", "path: '*.png'"},
        {"path: [ /a, /b ]", "path: [ /b, /a ]"},
        {"host: '*.example.com'", "host: api.example.com"},
        {"host: '*.example.com'", "host: '*.eu.example.com'"},
        {"host: API.example.com", "host: api.example.com"},
        {"path: /a, methods: [ GET, POST ]", "path: /a, methods: GET"},
        {"path: /a", "path: /a, headers: { X: '1' }"},
        {"headers: { X: '*' }", "headers: { X: '1' }"},
    };
    for (const auto& [first, second] : shadowed) {
        CAPTURE(first);
        CAPTURE(second);
        CHECK(second_is_shadowed(first, second));
    }
}

TEST_CASE("a route that some request can reach is not reported as shadowed")
{
    const std::pair<const char*, const char*> reachable[] = {
        {"path: /a", ""},
        {"path: /a", "path: /a/"},
        {"path: /users/me", "path: '/users/{id}'"},
        {"path: '/users/{id}'", "path: /users/*"},
        {"path: '/users/{id}'", "path: /users/"},
        {"path: '*.png'", "path: /a.png"},
        {"path: [ /a, /b ]", "path: [ /a, /c ]"},
        {"host: '*.example.com'", "host: example.com"},
        {"host: api.example.com", "path: /a"},
        {"path: /a, methods: GET", "path: /a"},
        {"path: /a, headers: { X: '1' }", "path: /a"},
        {"headers: { X: '1' }", "headers: { X: '2' }"},
    };
    for (const auto& [first, second] : reachable) {
        CAPTURE(first);
        CAPTURE(second);
        CHECK(!second_is_shadowed(first, second));
    }
}
