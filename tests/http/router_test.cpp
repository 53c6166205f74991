#include "gateway/http/host.hpp"
#include "gateway/http/routes/router.hpp"
#include "gateway/http/text.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

using namespace headgate::http;

namespace {

struct request
{
    std::string method = "GET", host = "a.com", path = "/";
    std::vector<std::pair<std::string, std::string>> headers;
};

field_list fields_of(const request& from)
{
    field_list fields;
    for (const auto& [name, value] : from.headers)
        fields.lines.push_back({name, value, find_field_id(name), false});
    return fields;
}

route_match find(const router& routes, const request& from)
{
    const auto fields = fields_of(from);
    route_match match;
    routes.find({from.host, from.path, find_method(from.method), from.method, &fields}, match);
    return match;
}

std::string allow(const router& routes, const route_match& match)
{
    byte_buffer out;
    routes.append_allow(out, match.allowed_methods);
    return std::string(out.view());
}

std::vector<std::string> split(std::string_view path)
{
    std::vector<std::string> segments(1);
    for (const char c : path.substr(1)) {
        if (c == '/')
            segments.emplace_back();
        else
            segments.back() += c;
    }
    return segments;
}

// A slow reference: tries every pattern in order, by the rules in the comments of route_pattern.hpp.
bool path_matches(const route_pattern& pattern, const std::string& path)
{
    if (pattern.path.empty() || pattern.path == "*" || pattern.path == "/*")
        return true;
    if (path == "*")
        return false;
    auto wanted = split(pattern.path), given = split(path);
    const auto same = [](const std::string& want, const std::string& got) {
        return want.front() == '{' ? !got.empty() : want == got;
    };
    const auto equal = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (wanted[i].empty() ? !given[i].empty() : !same(wanted[i], given[i]))
                return false;
        return true;
    };
    if (!wanted.back().empty() && wanted.back().front() == '*') {
        const auto suffix = wanted.back().substr(1);
        wanted.pop_back();
        if (given.size() < wanted.size() || !equal(wanted.size()))
            return false;
        if (suffix.empty())
            return true;
        std::string rest;
        for (std::size_t i = wanted.size(); i < given.size(); ++i)
            rest += (i == wanted.size() ? "" : "/") + given[i];
        return given.size() > wanted.size() && rest.ends_with(suffix);
    }
    if (pattern.ignore_trailing_slash && given.size() == wanted.size() + 1 && given.back().empty())
        given.pop_back();
    return given.size() == wanted.size() && equal(wanted.size());
}

bool host_matches(const route_pattern& pattern, const std::string& host)
{
    host_text buffer;
    const std::string name(routing_host(host, buffer));
    for (const auto& wanted : pattern.hosts)
        if (wanted == "*" || equals_ignoring_case(wanted, name) ||
            (wanted.starts_with("*.") && name.size() > wanted.size() - 1 &&
             equals_ignoring_case(std::string_view(name).substr(name.size() - wanted.size() + 1), wanted.substr(1))))
            return true;
    return pattern.hosts.empty();
}

route_match find_slowly(const std::vector<route_pattern>& patterns, const request& from)
{
    route_match match;
    for (std::uint32_t i = 0; i < patterns.size(); ++i) {
        const auto& pattern = patterns[i];
        bool headers = true;
        for (const auto& wanted : pattern.headers)
            headers = headers && std::any_of(from.headers.begin(), from.headers.end(), [&](const auto& line) {
                          return equals_ignoring_case(line.first, wanted.name) &&
                                 (!wanted.value || *wanted.value == line.second);
                      });
        if (!headers || !host_matches(pattern, from.host) || !path_matches(pattern, from.path))
            continue;
        if (pattern.methods.empty() || std::count(pattern.methods.begin(), pattern.methods.end(), from.method) != 0) {
            match.route = i;
            match.allowed_methods = 0;
            return match;
        }
        for (const auto& method : pattern.methods)
            match.allowed_methods |= std::uint64_t{1} << static_cast<unsigned>(find_method(method));
    }
    return match;
}

template <class T>
auto one_of(std::vector<T> values)
{
    return rc::gen::elementOf(std::move(values));
}

route_pattern path(std::string text) { return {.path = std::move(text)}; }

} // namespace

TEST_CASE("router: the first matching route in the file's order is found, whatever its kind")
{
    const router routes({path("/api/v1/*"), path("/api/{x}/users"), path("/api/*"), path("/api/v2/users"), path("*")});
    CHECK(find(routes, {.path = "/api/v1/users"}).route == 0);
    CHECK(find(routes, {.path = "/api/v2/users"}).route == 1);
    CHECK(find(routes, {.path = "/api/v2/x"}).route == 2);
    CHECK(find(routes, {.path = "/api"}).route == 2);
    CHECK(find(routes, {.path = "/api/"}).route == 2);
    CHECK(find(routes, {.path = "/apis"}).route == 4);
    CHECK(find(routes, {.path = "/"}).route == 4);
    CHECK(find(routes, {.method = "OPTIONS", .path = "*"}).route == 4);
}

TEST_CASE("router: parameters and tails are captured as views")
{
    const router routes({path("/u/{user}/p/{post}"), path("/files/{bucket}/*"), path("/css/*.css")});
    const request post{.path = "/u/ann/p/7"}, file{.path = "/files/b/x/y"}, style{.path = "/css/a/b.css"};
    auto match = find(routes, post);
    REQUIRE(match.params().size() == 2);
    CHECK(match.params()[0].name == "user");
    CHECK(match.params()[0].value == "ann");
    CHECK(match.params()[1].value == "7");
    match = find(routes, file);
    CHECK(match.params()[0].value == "b");
    CHECK(match.tail == "x/y");
    CHECK(find(routes, {.path = "/files/b"}).tail.empty());
    CHECK(find(routes, style).tail == "a/b.css");
    CHECK_FALSE(find(routes, {.path = "/css/a.js"}).found());
    CHECK_FALSE(find(routes, {.path = "/u//p/7"}).found());
    CHECK_FALSE(find(routes, {.path = "/u/ann/p/7/"}).found());
}

TEST_CASE("router: hosts match exactly, by wildcard at any depth, or all; without case, port and final dot")
{
    const router routes({{.hosts = {"api.example.com"}, .path = "/*"},
                         {.hosts = {"*.Example.com"}, .path = "/*"},
                         {.hosts = {"[::1]"}, .path = "/*"},
                         path("/*")});
    CHECK(find(routes, {.host = "API.example.com:8080"}).route == 0);
    CHECK(find(routes, {.host = "api.example.com."}).route == 0);
    CHECK(find(routes, {.host = "x.y.EXAMPLE.com"}).route == 1);
    CHECK(find(routes, {.host = "example.com"}).route == 3);
    CHECK(find(routes, {.host = "notexample.com"}).route == 3);
    CHECK(find(routes, {.host = "[::1]:80"}).route == 2);
    CHECK(find(routes, {.host = "[0:0::0:1]"}).route == 2);
    const router spelled(std::vector<route_pattern>{{.hosts = {"[0::ABCD]"}, .path = "/*"}});
    CHECK(find(spelled, {.host = "[::abcd]:80"}).found());
    CHECK(find(routes, {.host = ""}).route == 3);
}

TEST_CASE("B24: if no matching route allows the method, the answer lists the methods they allow")
{
    const router routes({{.path = "/a", .methods = {"GET", "HEAD"}},
                         {.path = "/{x}", .methods = {"PURGE"}},
                         {.path = "/b", .methods = {"POST"}}});
    const auto refused = find(routes, {.method = "DELETE", .path = "/a"});
    CHECK_FALSE(refused.found());
    CHECK(allow(routes, refused) == "GET, HEAD, PURGE");
    CHECK(find(routes, {.method = "PURGE", .path = "/a"}).route == 1);
    CHECK(find(routes, {.method = "purge", .path = "/a"}).allowed_methods != 0);
    CHECK(find(routes, {.method = "DELETE", .path = "/c/d"}).allowed_methods == 0);
}

TEST_CASE("K7: method override headers change neither route nor method")
{
    const router routes({{.path = "/a", .methods = {"DELETE"}}, path("/*")});
    CHECK(find(routes, {.method = "POST",
                        .path = "/a",
                        .headers = {{"X-HTTP-Method-Override", "DELETE"}, {"X-Method-Override", "DELETE"}}})
              .route == 1);
}

TEST_CASE("router: header conditions are by presence or by exact value")
{
    const router routes(
        {{.path = "/a", .headers = {{"X-Beta", "yes"}}}, {.path = "/a", .headers = {{"X-Beta", {}}}}, path("/a")});
    CHECK(find(routes, {.path = "/a", .headers = {{"x-beta", "yes"}}}).route == 0);
    CHECK(find(routes, {.path = "/a", .headers = {{"x-beta", "Yes"}}}).route == 1);
    CHECK(find(routes, {.path = "/a"}).route == 2);
}

TEST_CASE("K5: a trailing slash is ignored if the route is configured so, literals match in canonical spelling")
{
    auto loose = path("/a");
    loose.ignore_trailing_slash = true;
    const router routes({loose, path("/caf\xc3\xa9"), path("/x%7ey/%2f")});
    CHECK(find(routes, {.path = "/a"}).found());
    CHECK(find(routes, {.path = "/a/"}).found());
    CHECK_FALSE(find(routes, {.path = "/a//"}).found());
    CHECK(find(routes, {.path = "/caf%C3%A9"}).route == 1);
    CHECK(find(routes, {.path = "/x~y/%2F"}).route == 2);
}

TEST_CASE("router: an invalid pattern is reported and matches nothing")
{
    for (const auto bad :
         {"a", "/a*", "/*/a", "/{a", "/{}", "/{a}b", "/a/../b", "/%", "/%zz", "/a?b", "/a\\b", "/**", "/*.{x}"}) {
        INFO(bad);
        CHECK_FALSE(find_problem(path(bad)).empty());
        const router routes({path(bad), path("*")});
        CHECK(find(routes, {.path = "/a"}).route == 1);
    }
    for (const auto host : {"", "a:80", "*a", "a.*.b", "*.", "a b"}) {
        INFO(host);
        CHECK_FALSE(find_problem({.hosts = {host}, .path = "/"}).empty());
    }
    CHECK_FALSE(find_problem({.path = "/", .methods = {"G T"}}).empty());
    CHECK(find_problem(path("/a/{b}/*.css")).empty());
    std::string deep;
    for (int i = 0; i < 17; ++i)
        deep += "/{a}";
    CHECK_FALSE(find_problem(path(deep)).empty());
}

TEST_CASE("router: agrees with trying every route in order")
{
    const auto pattern = rc::gen::exec([] {
        const auto segment = one_of<std::string>({"a", "b", "c.css", "{p}", "{q}", ""});
        std::string text;
        const auto depth = *rc::gen::inRange(0, 4);
        for (int i = 0; i < depth; ++i)
            text += "/" + *segment;
        text += *one_of<std::string>({"", "", "/*", "/*.css", "/"});
        if (text.empty())
            text = *one_of<std::string>({"*", "/", ""});
        return route_pattern{
            .hosts = *one_of<std::vector<std::string>>({{}, {"a.com"}, {"*.a.com"}, {"b.com", "*.com"}, {"*"}}),
            .path = text,
            .ignore_trailing_slash = *rc::gen::arbitrary<bool>(),
            .methods = *one_of<std::vector<std::string>>({{}, {}, {"GET"}, {"POST", "PUT"}}),
            .headers = *one_of<std::vector<header_match>>({{}, {}, {}, {{"X-A", "1"}}, {{"x-a", {}}}})};
    });
    const auto ask = rc::gen::exec([] {
        std::string text;
        const auto depth = *rc::gen::inRange(1, 6);
        for (int i = 0; i < depth; ++i)
            text += "/" + *one_of<std::string>({"a", "b", "c.css", "d", ""});
        return request{
            .method = *one_of<std::string>({"GET", "POST", "DELETE"}),
            .host = *one_of<std::string>({"a.com", "A.com:80", "x.a.com", "b.com.", "c.org", "x.y.a.com", ""}),
            .path = text,
            .headers = *one_of<std::vector<std::pair<std::string, std::string>>>({{}, {{"x-A", "1"}}, {{"X-a", "2"}}})};
    });
    CHECK(rc::check("same as linear", [&] {
        const auto patterns = *rc::gen::container<std::vector<route_pattern>>(pattern);
        const router routes(patterns);
        for (int i = 0; i < 20; ++i) {
            const auto from = *ask;
            const auto fast = find(routes, from), slow = find_slowly(patterns, from);
            RC_ASSERT(fast.route == slow.route);
            RC_ASSERT(fast.allowed_methods == slow.allowed_methods);
        }
    }));
}
