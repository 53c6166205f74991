// Request lines and header sections through a real listener: hardening B20-B32.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::tests;
using namespace std::string_literals;

namespace {

std::string get(const std::string& lines) { return "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"; }
std::string target(const std::string& text) { return "GET " + text + " HTTP/1.1\r\nHost: a\r\n\r\n"; }
std::string host(const std::string& text) { return "GET / HTTP/1.1\r\nHost: " + text + "\r\n\r\n"; }

std::vector<malformed> each(const std::string& number, unsigned status, const std::vector<std::string>& requests)
{
    std::vector<malformed> rows;
    for (const auto& request : requests)
        rows.push_back({number, request, status});
    return rows;
}

// Sends one valid request and returns what the upstream received.
std::string forwarded(const std::string& request, const std::string& more = "")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), more));
    CHECK(status_of(gateway.ask(request)) == 200);
    return up.last();
}

} // namespace

TEST_CASE("head: B20, names and colons that are not in order are refused")
{
    check_refused(each("B20", 400,
                       {get("X : 1\r\n"), get("X\t: 1\r\n"), get(": 1\r\n"), get("N@me: 1\r\n"),
                        get("N\xc3\xa4me: 1\r\n"), get("no colon\r\n"), get("X Y: 1\r\n"), get("X(y): 1\r\n"),
                        get("\"X\": 1\r\n"), "GET / HTTP/1.1\r\nHost : a\r\n\r\n", get("Content-Length : 5\r\n"),
                        get("Transfer-Encoding : chunked\r\n"), get("Transfer-Encoding\x0b: chunked\r\n")}),
                  reaches::nothing);
}

TEST_CASE("head: B21, control bytes anywhere in the head are refused, obs-text in values is forwarded")
{
    check_refused(each("B21", 400,
                       {get("X: a\rb\r\n"), get("X: a\0b\r\n"s), get("X\0Y: a\r\n"s), get("\0: a\r\n"s),
                        get("X: \x01\r\n"), get("X: \x1f\r\n"), get("X: \x7f\r\n"), get("X: a\r\r\n"), target("/\0"s),
                        target("/\x01"), "GET\0/ HTTP/1.1\r\nHost: a\r\n\r\n"s, "GET / HTTP/1.1\0\r\nHost: a\r\n\r\n"s,
                        "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", "\0GET / HTTP/1.1\r\nHost: a\r\n\r\n"s}),
                  reaches::nothing);
    CHECK(field_of(forwarded(get("X: caf\xe9\tol\xc3\xa9\r\n")), "X") == "caf\xe9\tol\xc3\xa9");
}

TEST_CASE("head: B22, a line that begins with white space is refused")
{
    check_refused(each("B22", 400,
                       {get("X: a\r\n b\r\n"), get("X: a\r\n\tb\r\n"), get("X: a\r\n b: c\r\n"), get("X: a\r\n \r\n"),
                        "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
                        " GET / HTTP/1.1\r\nHost: a\r\n\r\n", get("Transfer-Encoding:\r\n chunked\r\n")}),
                  reaches::nothing);
}

TEST_CASE("head: B23, a bare LF is no line end")
{
    check_refused(
        each("B23", 400,
             {"GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
              "GET / HTTP/1.1\r\nHost: a\r\n\n", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
              "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\n\n"}),
        reaches::nothing);
}

TEST_CASE("head: B24, methods are tokens, forwarded as they are; a route's list answers 405 with Allow")
{
    check_refused(each("B24", 400,
                       {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n",
                        "\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
                        "G\xc3\x89T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"}),
                  reaches::nothing);
    CHECK(forwarded("get / HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("get / HTTP/1.1\r\n"));
    CHECK(forwarded("M-SEARCH!#$ / HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("M-SEARCH!#$ / "));

    recorder up;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "routes:\n  - { name: all, match: { methods: [ GET, PUT ] }, upstream: up }\n"));
    auto client = gateway.connect();
    client.send("DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    const auto refused = client.read_response();
    CHECK(status_of(refused) == 405);
    CHECK(field_of(refused, "Allow").find("GET") != std::string::npos);
    CHECK(field_of(refused, "Allow").find("PUT") != std::string::npos);
    CHECK(up.connections() == 0);
    client.send("get / HTTP/1.1\r\nHost: a\r\n\r\n"); // not GET
    CHECK(status_of(client.read_response()) == 405);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(client.read_response()) == 200);
}

TEST_CASE("head: B25, targets in another form or with bad bytes are refused")
{
    std::vector<malformed> rows;
    for (const std::string bad :
         {"foo",     "*",         "ftp://a/", "http://", "http:///x", "http://u@a/", "http://a:b/", "http:/a",
          "/a b",    "/\x7f",     "/#x",      "/%",      "/%2",       "/%zz",        "/%00",        "/?%00",
          "/?a=%g1", "/\xc3\xa9", "/?\xff",   "a:80",    "?x",        "http://a#x",  "../x"})
        rows.push_back({"B25", target(bad), 400});
    rows.push_back({"B25", "OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", 400});
    rows.push_back({"B25", "OPTIONS *?x HTTP/1.1\r\nHost: a\r\n\r\n", 400});
    check_refused(rows, reaches::nothing);
    CHECK(forwarded("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("OPTIONS * HTTP/1.1\r\n"));
    CHECK(forwarded("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("OPTIONS * HTTP/1.1\r\n"));
    CHECK(forwarded("OPTIONS /x HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("OPTIONS /x HTTP/1.1\r\n"));
}

TEST_CASE("head: B25, bytes that browsers leave as they are pass unchanged in a query, and are encoded in a path")
{
    const std::string query = "?a=\"<>[]\\^`{|}'&%22=\"";
    CHECK(forwarded(target("/x" + query)).starts_with("GET /x" + query + " HTTP/1.1\r\n"));
    CHECK(forwarded(target("/\"<>[]^`{|}" + query)).starts_with("GET /%22%3C%3E%5B%5D%5E%60%7B%7C%7D" + query + " "));
    CHECK(forwarded(target("http://a/" + query)).starts_with("GET /" + query + " HTTP/1.1\r\n"));
    CHECK(forwarded(target("/" + query), "routes:\n  - { name: all, upstream: up, forward_path: as_received }\n")
              .starts_with("GET /" + query + " HTTP/1.1\r\n"));
}

TEST_CASE("head: B26, the version is HTTP/1.0 or HTTP/1.1")
{
    std::vector<malformed> rows;
    for (const std::string version : {"HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/0.9", "HTTP/3.0", "HTTP/9.9"})
        rows.push_back({"B26", "GET / " + version + "\r\nHost: a\r\n\r\n", 505});
    for (const std::string version : {"HTTP/1", "HTTP/1.", "HTTP/.1", "http/1.1", "HTTP/01.1", "HTTP/1.10", "HTTP/1.1 ",
                                      " HTTP/1.1", "HTTP/1,1", "HTTP /1.1", "HTTP/1.1x", "ICY/1.1", "HTTP/+1.1", ""})
        rows.push_back({"B26", "GET / " + version + "\r\nHost: a\r\n\r\n", 400});
    rows.push_back({"B26", "GET /\r\n", 400});
    rows.push_back({"B26", "GET\r\n", 400});
    check_refused(rows, reaches::nothing);
}

TEST_CASE("head: B27, exactly one valid Host")
{
    auto rows = each("B27", 400,
                     {"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                      "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"});
    for (const std::string bad :
         {"",    "a@b",  "a/b",     "a,b", "a b", "[::1", "::1", "[::1]x", "[::g]",    "a:65536",
          "a:x", "a:-1", "a:80:80", "a?",  "a#",  "a\\b", "[]",  "..",     "http://a", "a\xc3\xa9"})
        rows.push_back({"B27", host(bad), 400});
    check_refused(rows, reaches::nothing);
    CHECK(field_of(forwarded(host("[::1]:8080")), "Host") == "[::1]:8080");
    CHECK(forwarded("GET / HTTP/1.0\r\n\r\n").starts_with("GET / HTTP/1.1\r\n"));
}

TEST_CASE("head: B28, an absolute target's authority is the Host, forwarded in origin-form")
{
    check_refused(each("B28", 400,
                       {"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
                        "GET http://a/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "GET http://a/ HTTP/1.1\r\n\r\n"}),
                  reaches::nothing);
    const auto seen = forwarded("GET http://A.example:80/x/../y?q HTTP/1.1\r\nHost: a.example\r\n\r\n");
    CHECK(seen.starts_with("GET /y?q HTTP/1.1\r\n"));
    CHECK(field_of(seen, "Host") == "A.example:80");
    CHECK(forwarded("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("GET /?q HTTP/1.1\r\n"));
    CHECK(field_of(forwarded("GET http://b.example/ HTTP/1.0\r\n\r\n"), "Host") == "b.example");
}

TEST_CASE("head: B29, underscores cannot imitate a field that decides something")
{
    check_refused(
        each("B29", 400,
             {get("Content_Length: 5\r\n"), get("Transfer_Encoding: chunked\r\n"), get("X_Forwarded_For: 1\r\n"),
              get("transfer-encoding_x: 1\r\nHOST_: b\r\nAUTHORIZATION: x\r\nX-Forwarded_For: 1\r\n"),
              get("Sec_WebSocket_Key: x\r\nContent_length: 1\r\n")}),
        reaches::nothing);
    const auto seen = forwarded(get("X_Own: 1\r\nX-Own: 2\r\n"));
    CHECK(field_of(seen, "X_Own") == "");
    CHECK(field_of(seen, "X-Own") == "2");
}

TEST_CASE("head: B30, request line, head and number of fields are limited")
{
    std::string many;
    for (int i = 0; i < 100; ++i) // and Host
        many += "X: 1\r\n";
    check_refused({{"B30", target("/" + std::string(8192, 'a')), 414},
                   {"B30", "GET /" + std::string(70'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
                   {"B30", std::string(9000, 'A'), 414},
                   {"B30", get("X: " + std::string(66'000, 'x') + "\r\n"), 431},
                   {"B30", get(many), 431}},
                  reaches::nothing);
    const auto line = "GET /" + std::string(8192 - 14, 'a') + " HTTP/1.1"; // 8,192 bytes
    CHECK(line.size() == 8192);
    CHECK(forwarded(line + "\r\nHost: a\r\n\r\n").starts_with(line));
    CHECK(forwarded(get("X: " + std::string(60'000, 'x') + "\r\n")).size() > 60'000);
}

TEST_CASE("head: B31, CONNECT and TRACE are 405 and no bytes after them are a request")
{
    for (const std::string request :
         {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
          "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n",
          "TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n"}) {
        for (const bool warm : {false, true}) {
            CAPTURE(request);
            CAPTURE(warm);
            recorder up;
            running_gateway gateway(running_gateway::in_front_of(up.server()));
            auto client = gateway.connect();
            if (warm) { // no state of an earlier request may affect this one
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                CHECK(status_of(client.read_response()) == 200);
            }
            client.send(request + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            const auto result = client.read_all();
            CHECK(status_of(result) == 405);
            CHECK(field_of(result, "Allow").find("GET") != std::string::npos);
            CHECK(field_of(result, "Connection") == "close");
            CHECK(client.was_closed());
            CHECK(count(result, "\r\nDate: ") == 1);
            CHECK(up.requests().size() == (warm ? 1 : 0));
        }
    }
}

TEST_CASE("head: B31, OPTIONS with Max-Forwards 0 is answered by the gateway, otherwise the value is decremented")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    client.send("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nContent-Length: 4\r\n\r\nbody");
    CHECK(status_of(client.read_response()) == 200);
    CHECK(up.connections() == 0);
    client.send("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 10\r\n\r\n");
    CHECK(status_of(client.read_response()) == 200);
    CHECK(field_of(up.last(), "Max-Forwards") == "9");
    client.send("GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"); // it is defined for OPTIONS and TRACE only
    CHECK(status_of(client.read_response()) == 200);
    CHECK(field_of(up.last(), "Max-Forwards") == "0");
    check_refused(each("B31", 400,
                       {"OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: x\r\n\r\n",
                        "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\nMax-Forwards: 2\r\n\r\n"}),
                  reaches::nothing);
}

TEST_CASE("head: B32, TLS and HTTP/2 on a plain port end the connection")
{
    std::string hello(512, '\xaa');
    hello.replace(0, 11, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s);
    check_refused(
        {{"B32", hello, 400}, {"B32", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505}, {"B32", std::string(300, '\x80'), 400}},
        reaches::nothing);
}
