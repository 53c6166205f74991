#include "tests/http/support.hpp"

using namespace headgate::http;
using namespace headgate::http::test;
using namespace std::literals;

namespace {

struct row
{
    std::string_view bytes;
    std::string_view code;
};

void check(std::initializer_list<row> rows)
{
    for (const auto& [bytes, code] : rows) {
        INFO(bytes);
        CHECK(request_code(bytes) == code);
    }
}

} // namespace

TEST_CASE("head: a request becomes views of its bytes, in order")
{
    const auto bytes = "POST /a?b HTTP/1.1\r\nHost: example.com\r\nX-Thing:\t one two \t\r\nEmpty:\r\n\r\nbody"sv;
    const auto request = parse_request(bytes);
    REQUIRE(request->state == parse_state::done);
    const auto& head = request->head();
    CHECK(head.method == "POST");
    CHECK(head.method_number == method_id::post);
    CHECK(head.target == "/a?b");
    CHECK(head.minor_version == 1);
    REQUIRE(head.fields.lines.size() == 3);
    CHECK(head.fields.lines[0].id == field_id::host);
    CHECK(head.fields.lines[1].name == "X-Thing");
    CHECK(head.fields.lines[1].value == "one two");
    CHECK(head.fields.lines[2].value.empty());
    CHECK(bytes.substr(request->parser.consumed()) == "body");
    CHECK(head.fields.find(field_id::host)->value == "example.com");
    CHECK(head.fields.find(field_id::date) == nullptr);
    CHECK(head.fields.find("x-THING") == &head.fields.lines[1]);
}

TEST_CASE("head: a parser that is reset reads the next head as if it were new")
{
    request_parser parser;
    CHECK(parser.feed("GET / HTTP/1.1\r\nBad Name: x\r\n\r\n") == parse_state::failed);
    parser.reset();
    CHECK_FALSE(parser.started());
    CHECK(parser.feed("GET /b HTTP/1.0\r\n\r\n") == parse_state::done);
    CHECK(parser.error() == http_error::none);
    CHECK(parser.head().fields.lines.empty());
    CHECK(parser.head().minor_version == 0);
}

TEST_CASE("head: Beast reads the fields that the scan has seen, whatever their form")
{
    const auto bytes =
        get_with("X-Seven: 1234567\r\nNo-Blank:x\r\nTwo:  y\r\nTab:\tz\r\nBehind: v \t\r\nEmpty:\r\n"
                 "Blank: \r\nBlanks: \t \r\nA_Name: 1\r\nx: 2\r\nUser-Agent: a\xff b:c\r\n"
                 "X-RateLimit-Explain: 1\r\nA-name-of-more-than-sixteen-bytes: 3\r\nconnection: close\r\n");
    const auto request = parse_request(bytes);
    REQUIRE(request->state == parse_state::done);
    request_scan scan;
    request_head head;
    field_list lines;
    REQUIRE(scan.feed(bytes, {}, head, &lines) == parse_state::done);
    const auto& fields = request->head().fields;
    REQUIRE(fields.lines.size() == 15);
    REQUIRE(lines.lines.size() == 15);
    CHECK(fields.present == lines.present);
    for (std::size_t i = 0; i < lines.lines.size(); ++i) {
        const auto &read = fields.lines[i], &seen = lines.lines[i];
        INFO(seen.name);
        CHECK(read.name == seen.name);
        CHECK(read.value == seen.value);
        CHECK(read.id == seen.id);
        CHECK(read.underscore == seen.underscore);
        CHECK(read.verbatim == seen.verbatim);
        if (read.verbatim)
            CHECK(read.line() == seen.line());
    }
    CHECK(fields.lines[1].value == "1234567");
    CHECK(fields.lines[1].line() == "X-Seven: 1234567\r\n");
    CHECK(fields.lines[5].value == "v");
    CHECK(fields.lines[9].underscore);
}

TEST_CASE("head: what framing admits is parsed, even when Beast rejects a value that it interprets")
{
    const auto request = parse_request(get_with("Proxy-Connection: a b\r\nX: y\r\nConnection: close\r\n"));
    REQUIRE(request->state == parse_state::done);
    REQUIRE(request->head().fields.lines.size() == 4);
    CHECK(request->head().method == "GET");
    CHECK(request->head().fields.lines[1].value == "a b");
    CHECK(request->head().fields.lines[2].value == "y");
    CHECK(request->head().fields.lines[3].value == "close");

    const auto response = parse_response("HTTP/1.1 200 Fine\r\nContent-Length: 5, , 5\r\nContent-Length: 05\r\n\r\n");
    REQUIRE(response->state == parse_state::done);
    CHECK(response->head().reason == "Fine");
    REQUIRE(response->head().fields.lines.size() == 2);
    CHECK(response->head().fields.lines[0].value == "5, , 5");
    response_framing framing;
    CHECK(frame_response(method_id::get, response->head(), framing) == http_error::none);
    CHECK(framing.body.length == 5);
}

TEST_CASE("head: what Beast refuses is refused with the reason of framing or of the target")
{
    check({{"GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n", "bad_target"},
           {"GET /\tx HTTP/1.1\r\nA: b\r\n\r\n", "bad_host"},
           {get_with("Content-Length: x\r\n"), "bad_content_length"},
           {get_with("Connection: close;x\r\n"), "bad_connection"},
           {post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "bad_framing"},
           {post_with("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"), "bad_framing"}});
}

TEST_CASE("head: the fields before a refused or missing one are available for the log")
{
    for (const auto end : {"Bad Name: x\r\n\r\n"sv, " folded\r\n"sv, "Later: unfinis"sv, ""sv}) {
        INFO(end);
        const auto bytes = "HEAD /p HTTP/1.0\r\nUser-Agent: me\r\nX_Y: 1\r\n" + std::string(end);
        const auto whole = parse_request(bytes);
        request_parser bytewise;
        std::string memory;
        feed_bytewise(bytewise, bytes, memory);
        for (const auto* head : {&whole->head(), &bytewise.head()}) {
            CHECK(head->method_number == method_id::head);
            CHECK(head->target == "/p");
            REQUIRE(head->fields.lines.size() == 2);
            CHECK(head->fields.find(field_id::user_agent)->value == "me");
            CHECK(head->fields.lines[1].underscore);
        }
    }
}

TEST_CASE("head: every known field name has its number, in any case, and similar names do not")
{
    const std::pair<std::string_view, field_id> names[] = {
        {"Host", field_id::host},
        {"cOnNeCtIoN", field_id::connection},
        {"CONTENT-LENGTH", field_id::content_length},
        {"transfer-encoding", field_id::transfer_encoding},
        {"TE", field_id::te},
        {"Trailer", field_id::trailer},
        {"Upgrade", field_id::upgrade},
        {"Expect", field_id::expect},
        {"Keep-Alive", field_id::keep_alive},
        {"Proxy-Connection", field_id::proxy_connection},
        {"Via", field_id::via},
        {"X-Forwarded-For", field_id::x_forwarded_for},
        {"X-Forwarded-Host", field_id::x_forwarded_host},
        {"X-Forwarded-Port", field_id::x_forwarded_port},
        {"RateLimit-Policy", field_id::ratelimit_policy},
        {"Sec-WebSocket-Key", field_id::sec_websocket_key},
        {"HTTP2-Settings", field_id::http2_settings},
        {"X-RateLimit-Explain", field_id::x_ratelimit_explain},
        {"X-Request-ID", field_id::x_request_id},
    };
    // A name in its line, followed by other bytes.
    const auto find_short = [](std::string name) {
        const auto size = name.size();
        return find_short_field_id((name + ": nothing but a value").c_str(), size);
    };
    for (const auto& [name, id] : names) {
        INFO(name);
        CHECK(find_field_id(name) == id);
        std::string other(name), shorter(name.substr(0, name.size() - 1));
        other[other.size() / 2] = '~';
        CHECK(find_field_id(other) == field_id::other);
        CHECK(find_field_id(std::string(name) + "s") == field_id::other);
        if (name.size() > 15)
            continue;
        CHECK(find_short(std::string(name)) == id);
        CHECK(find_short(other) == field_id::other);
        CHECK(find_short(shorter) == find_field_id(shorter));
    }
    CHECK(find_short("x") == field_id::other);
    CHECK(find_field_id("x") == field_id::other);
    CHECK(find_field_id("") == field_id::other);
}

TEST_CASE("B20: white space before the colon, an empty or non-token name, a line without colon are refused")
{
    check({{get_with("A : b\r\n"), "bad_header"},
           {get_with("A\t: b\r\n"), "bad_header"},
           {get_with(": b\r\n"), "bad_header"},
           {get_with("A b: c\r\n"), "bad_header"},
           {get_with("A(: c\r\n"), "bad_header"},
           {get_with("A\xc3\xa9: c\r\n"), "bad_header"},
           {get_with("A\r\n"), "bad_header"},
           {get_with("{\"a\": 1}\r\n"), "bad_header"},
           {get_with("Content-Length : 5\r\n"), "bad_header"},
           {get_with("!#$%&'*+-.^`|~09az: c\r\n"), "none"}});
}

TEST_CASE("B21: bare CR, NUL and other control bytes are refused anywhere in the head; obs-text in a value is kept")
{
    for (const auto where : {"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", "G%sET / HTTP/1.1\r\nHost: a\r\n\r\n",
                             "GET / HTTP/1.1%s\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHo%sst: a\r\n\r\n",
                             "GET / HTTP/1.1\r\nHost: a%sb\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: %sb\r\n\r\n"}) {
        for (int c = 0; c < 0x20; ++c) {
            if (c == '\t')
                continue;
            std::string bytes = where;
            bytes.replace(bytes.find("%s"), 2, 1, static_cast<char>(c));
            INFO(where, " with byte ", c);
            CHECK(request_code(bytes) == (c == '\r' || c == '\n' ? "bare_line_end" : "control_byte"));
        }
        std::string bytes = where;
        bytes.replace(bytes.find("%s"), 2, 1, '\x7f');
        CHECK(request_code(bytes) == "control_byte");
    }
    const auto request = parse_request(get_with("X: caf\xe9 \xff\tb\r\n"));
    CHECK(request->head().fields.lines[1].value == "caf\xe9 \xff\tb");
}

TEST_CASE("B22: obs-fold and white space before the first header are refused, as soon as the white space is read")
{
    check({{get_with("A: b\r\n c\r\n"), "obs_fold"},
           {get_with("A: b\r\n\tc\r\n"), "obs_fold"},
           {get_with("A: b\r\n \r\n"), "obs_fold"},
           {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "obs_fold"},
           {"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", "obs_fold"},
           {"GET / HTTP/1.1\r\nHost: a\r\n ", "obs_fold"}});
}

TEST_CASE("B23: a bare LF is refused as soon as it is read")
{
    check({{"GET / HTTP/1.1\n", "bare_line_end"},
           {"\n", "bare_line_end"},
           {"GET / HTTP/1.1\r\nHost: a\n", "bare_line_end"},
           {"GET / HTTP/1.1\r\nHost: a\r\n\n", "bare_line_end"},
           {"GET / HTTP/1.1\r\nHost: a\r\n\r", "need_more"},
           {"GET / HTTP/1.1\r\nHost: a\r\n\rX", "bare_line_end"}});
}

TEST_CASE("B24: a method is a token and keeps its case")
{
    check({{"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_method"},
           {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "bad_method"},
           {"(GET) / HTTP/1.1\r\n", "bad_request_line"},
           {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_request_line"},
           {"PURGE / HTTP/1.1\r\nHost: a\r\n\r\n", "none"}});
    const auto request = parse_request("get / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(request->head().method == "get");
    CHECK(request->head().method_number == method_id::other);
}

TEST_CASE("B25: a request line has exactly two single spaces")
{
    check({{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_request_line"},
           {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "bad_version"},
           {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET\r\n", "bad_request_line"}});
}

TEST_CASE("B26: only HTTP/1.0 and HTTP/1.1; other versions 505, malformed ones and HTTP/0.9 400")
{
    check({{"GET / HTTP/1.0\r\n\r\n", "none"},
           {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "unsupported_version"},
           {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "unsupported_version"},
           {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "unsupported_version"},
           {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "unsupported_version"},
           {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / HTTP/01.1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / HTTP/1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / http/1.1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / HTTP/1,1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET / XTTP/1.1\r\nHost: a\r\n\r\n", "bad_version"},
           {"GET /\r\n", "bad_request_line"}});
    CHECK(describe(http_error::unsupported_version).status == 505);
}

TEST_CASE("B29: a name that only differs from a protected one by an underscore is refused")
{
    check({{get_with("Content_Length: 5\r\n"), "aliased_header"},
           {get_with("transfer_encoding: chunked\r\n"), "aliased_header"},
           {get_with("X_Forwarded-For: 1.2.3.4\r\n"), "aliased_header"},
           {get_with("X_FORWARDED_FOR: 1.2.3.4\r\n"), "aliased_header"},
           {get_with("x_request_id: 1\r\n"), "aliased_header"},
           {get_with("My_Header: 1\r\n"), "none"}});
    CHECK(imitates("X_Api-key", "X-API-Key"));
    CHECK_FALSE(imitates("x-api-key", "X-API-Key"));
    CHECK_FALSE(imitates("X_Api-keys", "X-API-Key"));
    CHECK(parse_request(get_with("My_Header: 1\r\n"))->head().fields.lines[1].underscore);
}

TEST_CASE("B30: request line 8 KiB 414, head 64 KiB 431, 100 fields 431, each exact to the byte")
{
    const auto line_of = [](std::size_t size) { return "GET /" + std::string(size - 14, 'a') + " HTTP/1.1\r\n"; };
    CHECK(request_code(line_of(8192) + "Host: a\r\n\r\n") == "none");
    CHECK(request_code(line_of(8193) + "Host: a\r\n\r\n") == "request_line_too_long");
    CHECK(request_code("GET /" + std::string(9000, 'a')) == "request_line_too_long");

    const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    CHECK(request_code(start + std::string(65536 - start.size() - 4, 'x') + "\r\n\r\n") == "none");
    CHECK(request_code(start + std::string(65536 - start.size() - 3, 'x') + "\r\n\r\n") == "head_too_large");
    CHECK(request_code(start + std::string(70000, 'x')) == "head_too_large");
    // Bytes after the limit are not read.
    CHECK(request_code(start + std::string(70000, 'x') + '\0') == "head_too_large");

    std::string lines;
    for (int i = 1; i < 100; ++i)
        lines += "A" + std::to_string(i) + ": b\r\n";
    CHECK(request_code(get_with(lines)) == "none");
    CHECK(request_code(get_with(lines + "Z: b\r\n")) == "too_many_fields");

    CHECK(request_code(get_with("A: b\r\n"), 0, {.request_line = 8, .head = 9, .fields = 2}) ==
          "request_line_too_long");
    for (std::size_t limit = 15; limit < 40;
         ++limit) // limits at every byte of a small head: both ways of feeding agree
        request_code("GET / HTTP/1.1\r\nHost: a\r\n X: y\r\n\r\n", 0, {.request_line = 14, .head = limit, .fields = 2});
    CHECK(describe(http_error::request_line_too_long).status == 414);
    CHECK(describe(http_error::head_too_large).status == 431);
    CHECK(describe(http_error::too_many_fields).status == 431);
}

TEST_CASE("B32: TLS is detected by the first byte, the HTTP/2 preface by its line")
{
    check({{"\x16"sv, "tls_on_plain_port"},
           {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv, "tls_on_plain_port"},
           {"\x80\x2e\x01\x03\x01"sv, "bad_request_line"},
           {"\0"sv, "bad_request_line"},
           {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http2_preface"}});
}

TEST_CASE("head: up to two empty lines before a request are skipped, more are not, and they do not start a request")
{
    CHECK(request_code("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == "none");
    CHECK(request_code("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == "none");
    CHECK(request_code("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == "bad_request_line");
    CHECK(request_code("\rGET / HTTP/1.1\r\n") == "bare_line_end");
    request_parser parser;
    CHECK(parser.feed("\r\n") == parse_state::need_more);
    CHECK_FALSE(parser.started());
    CHECK(parser.feed("\r\nG") == parse_state::need_more);
    CHECK(parser.started());
}

TEST_CASE("D1: a response's status line and version are read strictly")
{
    const auto good = parse_response("HTTP/1.1 404 Not Here\r\nA: b\r\n\r\n");
    CHECK(good->state == parse_state::done);
    CHECK(good->head().status == 404);
    CHECK(good->head().reason == "Not Here");
    const auto bare = parse_response("HTTP/1.0 200\r\nA: b\r\n\r\n"); // no space after the status
    CHECK(bare->head().status == 200);
    REQUIRE(bare->head().fields.lines.size() == 1);
    CHECK(bare->head().fields.lines[0].value == "b");
    CHECK(parse_response("HTTP/1.1 200 \r\n\r\n")->head().reason.empty());
    for (const auto bad :
         {"HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
          "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n",
          "SSH-2.0-x\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1\t200 OK\r\n\r\n", "HTTP/1.1 200\tOK\r\n\r\n",
          "<html>", "HTTP/1.1 +20 OK\r\n\r\n"}) {
        INFO(bad);
        CHECK(parse_response(bad)->parser.error() == http_error::upstream_bad_head);
    }
    CHECK(parse_response("HTTP/1.1 200 OK\r\nX: " + std::string(66000, 'x'))->parser.error() ==
          http_error::upstream_head_too_large);
    CHECK(parse_response("HTTP/1.1 200 " + std::string(66000, 'x'))->parser.error() ==
          http_error::upstream_head_too_large);
}

TEST_CASE("C13: a response's fields are checked by the same rules as a request's")
{
    for (const auto lines :
         {"A : b\r\n"sv, "A: b\r\n c\r\n"sv, "A: b\n"sv, "A: \0b\r\n"sv, "A: b\rc\r\n"sv, "A\r\n"sv, ": b\r\n"sv}) {
        INFO(lines);
        const auto response = parse_response("HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n");
        CHECK(response->parser.error() == http_error::upstream_bad_head);
    }
}
