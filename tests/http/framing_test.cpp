#include "gateway/http/host.hpp"
#include "tests/http/support.hpp"

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

request_framing framed(std::string_view bytes)
{
    static std::unique_ptr<parsed<request_parser>> kept; // the framing has views of it
    kept = parse_request(bytes);
    request_framing framing;
    INFO(bytes);
    CHECK(frame_request(kept->head(), 1 << 20, framing) == http_error::none);
    return framing;
}

struct response_outcome
{
    http_error error;
    response_framing framing;
};
response_outcome answer(std::string_view bytes, method_id request_method = method_id::get)
{
    static std::unique_ptr<parsed<response_parser>> kept;
    kept = parse_response(bytes);
    REQUIRE(kept->state == parse_state::done);
    response_outcome out{};
    out.error = frame_response(request_method, kept->head(), out.framing);
    return out;
}
std::string ok_with(std::string_view lines) { return "HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n"; }

} // namespace

TEST_CASE("A1: two Content-Length lines are refused, different or not")
{
    CHECK(request_code(post_with("Content-Length: 5\r\nContent-Length: 6\r\n")) == "bad_content_length");
    CHECK(request_code(post_with("Content-Length: 5\r\nContent-Length: 5\r\n")) == "bad_content_length");
    CHECK(request_code(post_with("Content-Length: 5\r\nX: y\r\ncontent-length: 5\r\n")) == "bad_content_length");
    CHECK(describe(http_error::bad_content_length).status == 400);
    CHECK(describe(http_error::bad_content_length).closes);
}

TEST_CASE("A2: Content-Length consists of digits only")
{
    for (const auto value : {"", "+5", "-5", "0x5", "5e0", "5.0", "5 5", "5,5", "5, 5", "5x", "5\t5",
                             "\xa0"
                             "5",
                             "five", "\"5\"", "5;", "5_0"}) {
        INFO(value);
        CHECK(request_code(post_with("Content-Length: " + std::string(value) + "\r\n")) == "bad_content_length");
    }
}

TEST_CASE("A3: Content-Length beyond 2^63-1 is refused as malformed, beyond the limit as too large")
{
    CHECK(request_code(post_with("Content-Length: 9223372036854775807\r\n"), UINT64_MAX) == "none");
    for (const auto value : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                             "18446744073709551621", "99999999999999999999999999"}) {
        INFO(value);
        CHECK(request_code(post_with("Content-Length: " + std::string(value) + "\r\n"), UINT64_MAX) ==
              "bad_content_length");
    }
    CHECK(request_code(post_with("Content-Length: 100\r\n"), 100) == "none");
    CHECK(request_code(post_with("Content-Length: 101\r\n"), 100) == "body_too_large");
    CHECK(describe(http_error::body_too_large).status == 413);
    CHECK(describe(http_error::body_too_large).closes);
}

TEST_CASE("A4: leading zeros of a Content-Length are decimal")
{
    CHECK(framed(post_with("Content-Length: 0010\r\n")).body == body_framing{body_kind::length, 10});
    CHECK(framed(post_with("Content-Length: 000000000000000000000000000000007\r\n")).body.length == 7);
}

TEST_CASE("A5: Content-Length together with Transfer-Encoding is refused in either order")
{
    CHECK(request_code(post_with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")) == "bad_framing");
    CHECK(request_code(post_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")) == "bad_framing");
    CHECK(request_code(post_with("Transfer-Encoding: identity\r\nContent-Length: 5\r\n")) == "bad_framing");
    CHECK(describe(http_error::bad_framing).closes);
}

TEST_CASE("A6: a Transfer-Encoding other than one line `chunked` is refused")
{
    CHECK(framed(post_with("Transfer-Encoding: chunked\r\n")).body.kind == body_kind::chunked);
    CHECK(framed(post_with("transfer-encoding:\t CHUNKED \r\n")).body.kind == body_kind::chunked);
    CHECK(request_code(post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")) == "bad_framing");
    CHECK(request_code(post_with("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n")) == "bad_framing");
    for (const auto value :
         {"", "identity", "gzip", "gzip, chunked", "chunked, chunked", "chunked, identity", "xchunked", "chunkedx",
          "chunked;q=1", "\"chunked\"", "chunked,", ",chunked", "chunked foo", "chun ked", "'chunked'",
          "\xa0"
          "chunked"}) {
        INFO(value);
        CHECK(request_code(post_with("Transfer-Encoding: " + std::string(value) + "\r\n")) ==
              "unsupported_transfer_coding");
    }
    CHECK(describe(http_error::unsupported_transfer_coding).status == 501);
    CHECK(describe(http_error::unsupported_transfer_coding).closes);
    // The scan refuses a control byte before the value.
    CHECK(request_code(post_with("Transfer-Encoding: \x0b"
                                 "chunked\r\n")) == "control_byte");
}

TEST_CASE("A7: Transfer-Encoding in HTTP/1.0 is refused")
{
    CHECK(request_code("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == "bad_framing");
}

TEST_CASE("C8: any method may have a body, and without a length there is none")
{
    CHECK(framed(get_with("")).body.kind == body_kind::none);
    CHECK(framed(post_with("")).body.kind == body_kind::none);
    for (const auto method : {"GET", "HEAD", "DELETE", "OPTIONS"})
        CHECK(framed(std::string(method) + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n").body.length == 3);
}

TEST_CASE("B27: HTTP/1.1 needs exactly one valid Host")
{
    const auto with_host = [](std::string_view host) {
        return "GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
    };
    for (const auto good : {"example.com", "EXAMPLE.com:80", "a_b", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443",
                            "x.", "a:65535", "a:0"})
        CHECK(request_code(with_host(good)) == "none");
    for (const auto bad : {"",         "a b",   "a,b",  "user@a", "a/b",    "a:",          "a:65536", "a:99999999999",
                           "a:-1",     "a:8o",  "[::1", "::1]",   "[::1]x", "[]",          "[::g]",   "[1.2.3.4]",
                           "a[b]",     "a:1:2", "::1",  "a?b",    "a#b",    "a\\b",        "a%2fb",   "\"a\"",
                           "\xc3\xa9", ".",     "..",   "a..b",   ".a",     "[::1%25eth0]"}) {
        INFO(bad);
        CHECK(request_code(with_host(bad)) == "bad_host");
    }
    CHECK(request_code("GET / HTTP/1.1\r\n\r\n") == "bad_host");
    CHECK(request_code("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n") == "bad_host");
    CHECK(request_code("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n") == "bad_host");
    CHECK(request_code("GET / HTTP/1.0\r\n\r\n") == "none");
    CHECK(request_code("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n") == "bad_host");
}

TEST_CASE("B31: CONNECT and TRACE are 405; Max-Forwards is read on OPTIONS only and must be a number")
{
    CHECK(request_code("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n") == "method_not_allowed");
    CHECK(request_code("TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n") == "method_not_allowed");
    CHECK(describe(http_error::method_not_allowed).status == 405);
    CHECK(framed("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n").max_forwards == 0);
    CHECK(framed("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 7\r\n\r\n").max_forwards == 7);
    CHECK(framed("GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: x\r\n\r\n").max_forwards == std::nullopt);
    CHECK(request_code("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: -1\r\n\r\n") == "bad_max_forwards");
    CHECK(request_code("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\nMax-Forwards: 0\r\n\r\n") ==
          "bad_max_forwards");
}

TEST_CASE("C1: naming a protected field in Connection is refused, other names are stored")
{
    for (const auto name : {"Host", "Content-Length", "authorization", "Cookie", "X-Forwarded-For", "X-Forwarded-Proto",
                            "X-Forwarded-Host", "Transfer-Encoding", "Forwarded", "Via", "x_forwarded_for"}) {
        INFO(name);
        CHECK(request_code(get_with("Connection: close, " + std::string(name) + "\r\n")) == "bad_connection");
    }
    CHECK(request_code(get_with("Connection: a b\r\n")) == "bad_connection");
    CHECK(request_code(get_with("Connection: \"close\"\r\n")) == "bad_connection");
    const auto framing = framed(get_with("Connection: keep-alive,, X-One\r\nConnection: x-two, TE, Upgrade\r\n"));
    CHECK(framing.connection.count == 2);
    CHECK(framing.connection.nominates("x-one"));
    CHECK(framing.connection.nominates("X-TWO"));
    CHECK_FALSE(framing.connection.nominates("TE"));
    CHECK(framing.connection.upgrade);
    CHECK(framing.connection.keep_alive);
    std::string many = "Connection: a0";
    for (int i = 1; i < 17; ++i)
        many += ",a" + std::to_string(i);
    CHECK(request_code(get_with(many + "\r\n")) == "bad_connection");
}

TEST_CASE("C4: 100-continue is the only expectation, and HTTP/1.0 has none")
{
    CHECK(framed(post_with("Expect: 100-Continue\r\nContent-Length: 5\r\n")).expects_continue);
    CHECK_FALSE(framed("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").expects_continue);
    CHECK(request_code(post_with("Expect: 200-ok\r\n")) == "expectation_failed");
    CHECK(request_code(post_with("Expect: \r\n")) == "expectation_failed");
    CHECK(describe(http_error::expectation_failed).status == 417);
}

TEST_CASE("C11: HTTP/1.1 stays open by default, HTTP/1.0 closes by default")
{
    CHECK(framed(get_with("")).keep_alive);
    CHECK_FALSE(framed(get_with("Connection: close\r\n")).keep_alive);
    CHECK_FALSE(framed(get_with("Connection: keep-alive, Close\r\n")).keep_alive);
    CHECK_FALSE(framed("GET / HTTP/1.0\r\n\r\n").keep_alive);
    CHECK(framed("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
}

TEST_CASE("D1: a response whose length is ambiguous is an upstream error")
{
    for (const auto lines :
         {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5, 6\r\n", "Content-Length: x\r\n",
          "Content-Length: \r\n", "Content-Length: -1\r\n", "Content-Length: 9223372036854775808\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n",
          "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: gzip\r\n",
          "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"}) {
        INFO(lines);
        CHECK(answer(ok_with(lines)).error == http_error::upstream_bad_framing);
        CHECK(answer(ok_with(lines), method_id::head).error == http_error::upstream_bad_framing);
    }
    CHECK(answer("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").error == http_error::upstream_bad_framing);
    CHECK(describe(http_error::upstream_bad_framing).status == 502);
    CHECK(answer(ok_with("Content-Length: 5\r\nContent-Length: 05\r\n")).framing.body.length == 5);
    CHECK(answer(ok_with("Content-Length: 5, 5\r\n")).framing.body.length == 5);
}

TEST_CASE("C6: answers to HEAD, 1xx, 204 and 304 have no body, whatever their head contains")
{
    const auto none = body_framing{};
    CHECK(answer(ok_with("Content-Length: 5\r\n"), method_id::head).framing.body == none);
    CHECK(answer(ok_with("Content-Length: 5\r\n"), method_id::head).framing.declared_length == 5);
    CHECK(answer(ok_with("Transfer-Encoding: chunked\r\n"), method_id::head).framing.body == none);
    CHECK(answer("HTTP/1.1 304 NM\r\nContent-Length: 5\r\n\r\n").framing.declared_length == 5);
    CHECK(answer("HTTP/1.1 304 NM\r\nContent-Length: 5\r\n\r\n").framing.reusable);
    for (const auto status : {"204 No Content", "100 Continue", "103 Early Hints"}) {
        const auto head = "HTTP/1.1 " + std::string(status) + "\r\n";
        CHECK(answer(head + "\r\n").framing.body == none);
        CHECK(answer(head + "\r\n").framing.reusable);
        const auto lying = answer(head + "Content-Length: 5\r\n\r\n").framing;
        CHECK(lying.body == none);
        CHECK_FALSE(lying.declared_length);
        CHECK_FALSE(lying.reusable);
        CHECK_FALSE(answer(head + "Transfer-Encoding: chunked\r\n\r\n").framing.reusable);
    }
    CHECK(answer("HTTP/1.1 103 E\r\n\r\n").framing.interim);
}

TEST_CASE("D6: a response without a length ends with its connection, which is not reused")
{
    const auto plain = answer(ok_with("")).framing;
    CHECK(plain.body.kind == body_kind::until_close);
    CHECK_FALSE(plain.reusable);
    CHECK(answer(ok_with("Content-Length: 5\r\n")).framing.reusable);
    CHECK(answer(ok_with("Transfer-Encoding: Chunked\r\n")).framing.body.kind == body_kind::chunked);
    CHECK_FALSE(answer(ok_with("Content-Length: 5\r\nConnection: close\r\n")).framing.reusable);
    CHECK_FALSE(answer("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n").framing.reusable);
    CHECK(answer("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n").framing.reusable);
}
