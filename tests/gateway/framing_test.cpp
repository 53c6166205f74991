// Request framing through a real listener: hardening A1-A16. Malformed requests are sent in one segment and byte by
// byte, each followed by a valid request, with an upstream that records every byte.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::tests;

namespace {

std::string post(const std::string& fields, const std::string& body = "hello")
{
    return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body;
}

std::string chunks(const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); }

// Sends one valid request, in one segment and byte by byte (A16), and returns what the upstream received.
std::string forwarded(const std::string& request)
{
    std::vector<std::string> seen;
    for (const bool bytewise : {false, true}) {
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        bytewise ? client.send_bytewise(request) : client.send(request);
        CHECK(status_of(client.read_response()) == 200);
        REQUIRE(up.requests().size() == 1);
        seen.push_back(up.last());
    }
    CHECK(plain_body(seen[0]) == plain_body(seen[1]));
    return seen[1];
}

} // namespace

TEST_CASE("framing: A1, two Content-Length lines are refused, equal or not")
{
    check_refused({{"A1", post("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
                   {"A1", post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
                   {"A1", post("Content-Length: 5\r\nX: y\r\ncontent-length: 0\r\n"), 400}},
                  reaches::nothing);
}

TEST_CASE("framing: A2, a Content-Length that is not digits is refused")
{
    std::vector<malformed> rows;
    for (const std::string value : {"+5", "-5", "0x5", "5e0", "5.0", "5 5", "", "5, 5", "5,6", "5a", "5;", "\"5\"",
                                    "\v5", "5\f", "\xef\xbc\x95", "five",
                                    "\xc2\xa0"
                                    "5"})
        rows.push_back({"A2", post("Content-Length: " + value + "\r\n"), 400});
    check_refused(rows, reaches::nothing);
}

TEST_CASE("framing: A3, a Content-Length that overflows is 400, one over the limit 413 before a byte is forwarded")
{
    check_refused({{"A3", post("Content-Length: 9223372036854775808\r\n"), 400},
                   {"A3", post("Content-Length: 18446744073709551616\r\n"), 400},
                   {"A3", post("Content-Length: 18446744073709551621\r\n"), 400},
                   {"A3", post("Content-Length: 99999999999999999999999999999\r\n"), 400},
                   {"A3", post("Content-Length: 10485761\r\n"), 413}},
                  reaches::nothing);
}

TEST_CASE("framing: A3, a chunked body over the limit is 413 and the upstream never sees it whole")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), "", "    limits: { body: 1KiB }\n"));
    auto client = gateway.connect();
    client.send(chunks("400\r\n" + std::string(0x400, 'x') + "\r\n1\r\ny\r\n0\r\n\r\n"));
    const auto result = client.read_all();
    CHECK(status_of(result) == 413);
    CHECK(client.was_closed());
    up.wait_until_closed();
    CHECK(up.requests().empty());
}

TEST_CASE("framing: A4, leading zeros are decimal and forwarded in canonical form")
{
    const auto seen = forwarded(post("Content-Length: 0000000000000000000000005\r\n"));
    CHECK(field_of(seen, "Content-Length") == "5");
    CHECK(body_of(seen) == "hello");
}

TEST_CASE("framing: A5, Content-Length together with Transfer-Encoding is refused in either order")
{
    const std::string body = "5\r\nhello\r\n0\r\n\r\n";
    check_refused({{"A5", post("Content-Length: 15\r\nTransfer-Encoding: chunked\r\n", body), 400},
                   {"A5", post("Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", body), 400},
                   {"A5", post("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"), 400},
                   {"A5", post("Transfer-Encoding:\r\nContent-Length: 5\r\n"), 400}},
                  reaches::nothing);
}

TEST_CASE("framing: A6, a Transfer-Encoding other than one chunked is refused")
{
    std::vector<malformed> rows;
    for (const std::string value :
         {"gzip", "chunked, gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "", "chunked;q=1",
          "\"chunked\"", "chunked,", ",chunked", "chunked\xa0", "chu nked"})
        rows.push_back({"A6", post("Transfer-Encoding: " + value + "\r\n", "0\r\n\r\n"), 501});
    rows.push_back({"A6", post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), 400});
    rows.push_back({"A6", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400});
    rows.push_back({"A6", post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400});
    rows.push_back({"A6", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", "0\r\n\r\n"), 400});
    check_refused(rows, reaches::nothing);
    CHECK(plain_body(forwarded(post("Transfer-Encoding:  CHUNKED \r\n", "5\r\nhello\r\n0\r\n\r\n"))) == "hello");
}

TEST_CASE("framing: A7, Transfer-Encoding in HTTP/1.0 is refused")
{
    check_refused(
        {{"A7", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
         {"A7", "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400}},
        reaches::nothing);
}

TEST_CASE("framing: A8, a chunk size that is not one cuts the request")
{
    std::vector<malformed> rows;
    for (const std::string line :
         {"g", "", " 5", "5 ", "5\t", "0x5", "-5", "+5", "00000000000000005", "11111111111111111", "ffffffffffffffff",
          "8000000000000000", "5 a=b", "5 5", "5x", "5,", "5:", "\"5\""}) {
        rows.push_back({"A8", chunks(line + "\r\nhello\r\n0\r\n\r\n"), 400});
        rows.push_back({"A8", chunks("5\r\nhello\r\n" + line + "\r\nhello\r\n0\r\n\r\n"), 400});
    }
    check_refused(rows, reaches::a_part);
}

TEST_CASE("framing: A9, a bare CR or LF anywhere in the chunked framing cuts the request")
{
    std::vector<malformed> rows;
    for (const std::string body :
         {"5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\rhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
          "5\r\nhello\r0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\r\n0\n\r\n",
          "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\n\rX", "5\r\nhello\r\n0\r\r\n", "5;a\nhello\r\n0\r\n\r\n",
          "5;a=b\rhello\r\n0\r\n\r\n", "0\r\nA: b\n\r\n", "0\r\nA: b\rc\r\n\r\n", "0\r\nA: b\r\n\n", "0;a\n\r\n",
          "\r\n5\r\nhello\r\n0\r\n\r\n", "\n5\r\nhello\r\n0\r\n\r\n"})
        rows.push_back({"A9", chunks(body), 400});
    check_refused(rows, reaches::a_part);
}

TEST_CASE("framing: A10, a CR or LF in a quoted extension cuts the request, good extensions are dropped")
{
    std::vector<malformed> rows;
    for (const auto& extension : std::vector<std::string>{";a=\"x\ny\"",
                                                          ";a=\"x\ry\"",
                                                          ";a=\"x\r\ny\"",
                                                          ";a=\"\\\n\"",
                                                          ";a=\"\\\r\"",
                                                          ";",
                                                          ";;a",
                                                          ";a=",
                                                          ";=b",
                                                          ";a b",
                                                          ";a=\"b",
                                                          ";a=\"b\"c",
                                                          {";a=\"\0\"", 6}})
        rows.push_back({"A10", chunks("5" + extension + "\r\nhello\r\n0\r\n\r\n"), 400});
    check_refused(rows, reaches::a_part);
    const auto seen = forwarded(chunks("5;a=b;c=\"d e\\\"f;\";flag\r\nhello\r\n0;last\r\n\r\n"));
    CHECK(plain_body(seen) == "hello");
    CHECK(seen.find("flag") == std::string::npos);
    for (const std::string extension :
         {" ;a", "; a", ";a =b", ";a= b", "\t; a = \"b c\" ; d\t;e", ";a ;b", ";a=b ;c"}) {
        CAPTURE(extension);
        CHECK(plain_body(forwarded(chunks("5" + extension + "\r\nhello\r\n0" + extension + "\r\n\r\n"))) == "hello");
    }
}

TEST_CASE("framing: A11, extensions and trailers are bounded")
{
    std::string small_ones;
    for (int i = 0; i < 50; ++i)
        small_ones += "1;" + std::string(100, 'e') + "\r\nx\r\n";
    std::string many_lines;
    for (int i = 0; i < 101; ++i)
        many_lines += "T: 1\r\n";
    check_refused({{"A11", chunks("5;" + std::string(5000, 'e') + "\r\nhello\r\n0\r\n\r\n"), 400},
                   {"A11", chunks("5" + std::string(5000, ' ') + ";e\r\nhello\r\n0\r\n\r\n"), 400},
                   {"A11", chunks(small_ones + "0\r\n\r\n"), 400},
                   {"A11", chunks("0\r\n" + many_lines + "\r\n"), 431},
                   {"A11", chunks("0\r\nT: " + std::string(66000, 't') + "\r\n\r\n"), 431}},
                  reaches::a_part);
}

TEST_CASE("framing: A12, trailers are checked, dropped and never become headers")
{
    const auto seen =
        forwarded(chunks("5\r\nhello\r\n0\r\nHost: evil\r\nAuthorization: evil\r\nX-Forwarded-For: evil\r\n"
                         "Content-Length: 3\r\nX-Sum: evil\r\n\r\n"));
    CHECK(plain_body(seen) == "hello");
    CHECK(seen.find("evil") == std::string::npos);
    CHECK(field_of(seen, "Host") == "a");
    check_refused({{"A12", chunks("0\r\nbad trailer\r\n\r\n"), 400}, {"A12", chunks("0\r\n folded: 1\r\n\r\n"), 400}},
                  reaches::a_part);
}

TEST_CASE("framing: A13, a body that ends early is never completed and its connection never reused")
{
    for (const auto& request : {post("Content-Length: 100\r\n", "half"), chunks("5\r\nhello\r\n"), chunks("64\r\nhalf"),
                                chunks("0\r\n"), chunks("0\r\nX-Sum: 1\r\n")}) {
        CAPTURE(request);
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        {
            auto client = gateway.connect();
            client.send(request);
            client.finish_sending();
            const auto result = client.read_all();
            CHECK(client.was_closed());
            CHECK(status_of(result) != 200);
        }
        up.wait_until_closed();
        CHECK(up.requests().empty());
        CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
        CHECK(up.requests().size() == 1);
        CHECK(up.last().starts_with("GET "));
    }
}

TEST_CASE("framing: A14, bytes after the last request of a connection are discarded, its answer arrives")
{
    const std::string rest = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(100'000, 'x');
    for (const std::string request : {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                                      "GET / HTTP/1.0\r\n\r\n", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
                                      "GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n"}) {
        CAPTURE(request);
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server()));
        auto client = gateway.connect();
        client.send(request + rest);
        const auto result = client.read_all();
        CHECK(client.was_closed());
        CHECK_FALSE(client.was_reset());
        CHECK(status_of(result) == 200);
        CHECK(count(result, "\r\nDate: ") == 1);
        CHECK(up.requests().size() == 1);
    }
}

TEST_CASE("framing: A15, an answer to a malformed request ends the connection even after good ones")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    // HEAD first: no state of a request may affect the answer to the next one.
    client.send("HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(client.read_response(false)) == 200);
    client.send("G@T /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto result = client.read_all();
    CHECK(status_of(result) == 400);
    CHECK(body_of(result).size() == std::stoul("0" + field_of(result, "Content-Length")));
    CHECK(client.was_closed());
    CHECK(up.requests().size() == 1);
}

TEST_CASE("framing: A16, requests and bodies are the same when every byte comes alone")
{
    const auto seen = forwarded("\r\nPUT /a?b HTTP/1.1\r\nHost: a:80\r\nX-Empty:\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n");
    CHECK(seen.starts_with("PUT /a?b HTTP/1.1\r\n"));
    CHECK(plain_body(seen) == "abc0123456789");
}
