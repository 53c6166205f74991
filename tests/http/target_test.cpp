#include "gateway/http/target.hpp"
#include "tests/http/support.hpp"

#include <rapidcheck.h>

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

http_error target_error(std::string_view target, method_id method = method_id::get)
{
    request_target out;
    return parse_target(method, target, out);
}
request_target target_of(std::string_view target, method_id method = method_id::get)
{
    request_target out;
    INFO(target);
    CHECK(parse_target(method, target, out) == http_error::none);
    return out;
}

std::string normal(std::string_view path, bool merge = true)
{
    byte_buffer scratch;
    return std::string(normalise_path(path, {.merge_slashes = merge}, scratch));
}

} // namespace

TEST_CASE("B25: only origin-form, absolute-form, and * for OPTIONS are valid")
{
    CHECK(target_of("/a/b?c=d?e").path == "/a/b");
    CHECK(target_of("/a/b?c=d?e").query == "?c=d?e");
    CHECK(target_of("/a?").query == "?");
    CHECK(target_of("/").query.empty());
    CHECK(target_of("/a?x=[1]|{2}\\").query == "?x=[1]|{2}\\");
    CHECK(target_of("/a?\"<>[]\\^`{|}").query == "?\"<>[]\\^`{|}");
    CHECK(normal(target_of("/\"<>[]^`{|}").path) == "/%22%3C%3E%5B%5D%5E%60%7B%7C%7D");
    CHECK(target_of("*", method_id::options).form == target_form::asterisk);
    CHECK(target_error("*") == http_error::bad_target);
    for (const auto bad :
         {"", "a", "a/b", "?x", "example.com:443", "ftp://a/", "http:/a", "http//a", "//", "mailto:x@y", "**"})
        if (std::string_view(bad) != "//")
            CHECK(target_error(bad) == http_error::bad_target);
    for (const auto bad :
         {"/a b",   "/a\tb", "/a#b",  "/a?b#c",       "/%",      "/%4",   "/%4g", "/%zz", "/a?%", "/a?%1", "/%00",
          "/a?%00", "/\x7f", "/\x01", "/caf\xc3\xa9", "/a?\xff", "/a\\b", "\\a",  "#",    "/%-1", "/%+1",  "/%0"}) {
        INFO(bad);
        CHECK(target_error(bad) == http_error::bad_target);
    }
    CHECK(target_error(std::string_view("/a\0b", 4)) == http_error::bad_target);
}

TEST_CASE("B28: an absolute target names the server, and Host must agree")
{
    const auto target = target_of("HTTP://Example.com:80/x?y");
    CHECK(target.form == target_form::absolute);
    CHECK(target.authority == "Example.com:80");
    CHECK(target.path == "/x");
    CHECK(target.query == "?y");
    CHECK(target_of("http://a").path == "/");
    CHECK(target_of("http://a?q").path == "/");
    CHECK(target_of("http://a?q").query == "?q");
    CHECK(target_of("http://a", method_id::options).path == "*");
    CHECK(target_of("https://a/").https);
    for (const auto bad : {"http://", "http:///x", "http://user@a/", "http://a:b/", "http://a:70000/", "http://[::1/",
                           "http://a#f", "http://a b/", "http://a\\b/", "http://a,b/"}) {
        INFO(bad);
        CHECK(target_error(bad) == http_error::bad_target);
    }
    std::string_view host;
    CHECK(effective_host(target, "example.com", host) == http_error::none);
    CHECK(host == "Example.com:80");
    CHECK(effective_host(target, "", host) == http_error::none);
    CHECK(effective_host(target, "example.com:81", host) == http_error::bad_host);
    CHECK(effective_host(target, "other.com", host) == http_error::bad_host);
    CHECK(effective_host(target_of("/x"), "h", host) == http_error::none);
    CHECK(host == "h");
    CHECK(effective_host(target_of("http://[0::1]/"), "[::1]", host) == http_error::none);
    CHECK(request_code("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n") == "bad_host");
    CHECK(request_code("GET http://a/ HTTP/1.1\r\nHost: A:80\r\n\r\n") == "none");
}

TEST_CASE("K4: unreserved escapes are decoded once, other escapes get upper case, separators stay data")
{
    CHECK(normal("/%61%7e%2d%5F%2E") == "/a~-_.");
    CHECK(normal("/a%2fb") == "/a%2Fb");
    CHECK(normal("/a%5cb") == "/a%5Cb");
    CHECK(normal("/%c3%a9") == "/%C3%A9");
    CHECK(normal("/%2561") == "/%2561");
    CHECK(normal("/%25%36%31") == "/%2561");
    CHECK(normal("/a;x=1/b") == "/a;x=1/b");
    CHECK(normal("/A/a") == "/A/a");
    CHECK(normal("/{x}|\"<>^`[]") == "/%7Bx%7D%7C%22%3C%3E%5E%60%5B%5D");
}

TEST_CASE("K5: all spellings of a path become the same bytes")
{
    for (const auto spelling : {"/api/x", "//api/x", "/api//x", "/./api/x", "/api/./x", "/api/%2e/x", "/a/../api/x",
                                "/a/%2e%2E/api/x", "/api/y/../x", "/../api/x", "/%2e%2e/api/x", "/%61pi/x", "/api/%78",
                                "/.././/api///./x", "/a/b/../../api/x", "/api/.%2e/api/x"}) {
        INFO(spelling);
        CHECK(normal(spelling) == "/api/x");
    }
    CHECK(normal("/a/..") == "/");
    CHECK(normal("/a/b/..") == "/a/");
    CHECK(normal("/a/.") == "/a/");
    CHECK(normal("/..") == "/");
    CHECK(normal("//") == "/");
    CHECK(normal("/a/") == "/a/");
    CHECK(normal("/...") == "/...");
    CHECK(normal("/.a/..b/c..") == "/.a/..b/c..");
    CHECK(normal("/a//../b") == "/b");
    CHECK(normal("/a//b", false) == "/a//b");
    CHECK(normal("/a//../b", false) == "/a/b");
    CHECK(normal("*") == "*");
}

TEST_CASE("K4: a canonical path is returned without a copy")
{
    byte_buffer scratch;
    for (const std::string_view path : {"/", "/a/b-c/~d", "/.well-known/acme", "/a..b/c.", "/a;b=c,d@e:f!$&'()*+"}) {
        CHECK(normalise_path(path, {}, scratch).data() == path.data());
        CHECK(scratch.capacity() == 0);
    }
}

TEST_CASE("K4: normalising twice changes nothing, and the result is a valid target")
{
    const auto piece =
        rc::gen::element<std::string>("/", ".", "..", "%2e", "%2E", "%2f", "%5C", "a", "B", "%61", "%25", "%41",
                                      "%c3%a9", ";", "{", "%7b", "~", "//", "/./", "/../", ":", "%3a", "|");
    CHECK(rc::check("idempotent", [&] {
        std::string path = "/";
        for (const auto& part : *rc::gen::container<std::vector<std::string>>(piece))
            path += part;
        const bool merge = *rc::gen::arbitrary<bool>();
        RC_ASSERT(target_error(path) == http_error::none);
        const auto once = normal(path, merge);
        RC_ASSERT(target_error(once) == http_error::none);
        RC_ASSERT(normal(once, merge) == once);
        RC_ASSERT(once.front() == '/');
        RC_ASSERT(once.find("/../") == std::string::npos);
        RC_ASSERT(!merge || once.find("//") == std::string::npos);
    }));
}
