#include "gateway/http/hop_headers.hpp"
#include "tests/http/support.hpp"

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

constexpr std::string_view date = "Mon, 01 Jan 2024 00:00:00 GMT";

// Returns the head that an upstream gets for `bytes`; our own parser must accept it.
std::string upstream_head(std::string_view bytes, upstream_head_options options = {})
{
    const auto request = parse_request(bytes);
    REQUIRE(request->state == parse_state::done);
    request_framing framing;
    REQUIRE(frame_request(request->head(), UINT64_MAX, framing) == http_error::none);
    options.path = options.path.empty() ? request->head().target : options.path;
    options.host = options.host.empty() ? framing.host : options.host;
    options.body = framing.body;
    options.connection = &framing.connection;
    options.accepts_trailers = framing.accepts_trailers;
    options.max_forwards = framing.max_forwards;
    byte_buffer out;
    build_upstream_head(out, request->head(), options);
    CHECK(parse_request(out.view())->parser.consumed() == out.size());
    return std::string(out.view());
}

upstream_head_options quiet()
{
    upstream_head_options options;
    options.x_forwarded_for = forwarded_for::off;
    options.x_forwarded_proto = options.x_forwarded_host = false;
    options.peer_trusted = true;
    return options;
}

// The head that a client gets, as the HTTP/1 session writes it.
std::string client_head(std::string_view bytes, client_field_options options = {},
                        method_id request_method = method_id::get, std::string_view connection = {})
{
    const auto response = parse_response(bytes);
    REQUIRE(response->state == parse_state::done);
    response_framing framing;
    REQUIRE(frame_response(request_method, response->head(), framing) == http_error::none);
    options.connection = &framing.connection;
    options.date = date;
    field_lines fields;
    if (framing.interim)
        append_interim_fields(fields, response->head(), framing.connection);
    else
        append_client_fields(fields, response->head(), options);
    const auto head = relay_head(response->head(), framing, fields);
    byte_buffer out;
    append_http1_head(out, head, framing.interim ? body_framing{} : frame_answer(head, 1), connection);
    CHECK(parse_response(out.view())->parser.consumed() == out.size());
    return std::string(out.view());
}

bool has(const std::string& head, std::string_view line)
{
    return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
}
bool names(const std::string& head, std::string_view name)
{
    return parse_request(head)->head().fields.find(name) != nullptr;
}

} // namespace

TEST_CASE("hop headers: forwarded fields keep their order and get uniform spacing, whichever fields are dropped")
{
    const auto head =
        upstream_head("GET / HTTP/1.1\r\nA: 1\r\nHost: h\r\nB: 2\r\nC:3\r\nD:  4 \r\nE:\r\nF: \r\nTE: x\r\n"
                      "A-name-of-more-than-sixteen-bytes: 5\r\nG: 6\r\nKeep-Alive: x\r\nH: 7\t\r\nI: 8\r\n\r\n",
                      quiet());
    CHECK(head == "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: \r\nF: \r\n"
                  "A-name-of-more-than-sixteen-bytes: 5\r\nG: 6\r\nH: 7\r\nI: 8\r\n\r\n");
    // No field is lost when the first or the last line of a message is dropped.
    CHECK(client_head("HTTP/1.1 200 OK\r\nKeep-Alive: x\r\nA: 1\r\nB: 2\r\nTrailer: t\r\n\r\n", {}, method_id::head) ==
          "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nDate: " + std::string(date) + "\r\n\r\n");
}

TEST_CASE("C1: hop-by-hop and named fields are not forwarded in requests")
{
    const auto head = upstream_head(
        "GET /x?y HTTP/1.1\r\nHost: h:1\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\n"
        "Proxy-Connection: keep-alive\r\nProxy-Authorization: x\r\nProxy-Authenticate: y\r\nTE: gzip\r\n"
        "Trailer: X\r\nUpgrade: foo\r\nAccept: */*\r\nUser-Agent: u\r\n\r\n",
        quiet());
    CHECK(head == "GET /x?y HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\nUser-Agent: u\r\n\r\n");
    auto keeping = quiet();
    keeping.keep_proxy_authorization = true;
    CHECK(has(upstream_head(get_with("Proxy-Authorization: x\r\n"), keeping), "Proxy-Authorization: x"));
}

TEST_CASE("C1: hop-by-hop and named fields are not forwarded in answers, but a named Content-Length is")
{
    const auto head = client_head(
        "HTTP/1.1 200 Fine\r\nConnection: keep-alive, X-Mine, Content-Length\r\nX-Mine: 1\r\nKeep-Alive: 5\r\n"
        "Proxy-Authenticate: y\r\nProxy-Connection: x\r\nTrailer: X\r\nUpgrade: h2c\r\nDate: D\r\nContent-Length: "
        "007\r\n\r\n");
    CHECK(head == "HTTP/1.1 200 Fine\r\nDate: D\r\nContent-Length: 7\r\n\r\n");
}

TEST_CASE("C1: of TE only trailers is forwarded, and Connection names it")
{
    const auto head = upstream_head(get_with("TE: gzip, Trailers\r\nConnection: TE\r\n"), quiet());
    CHECK(has(head, "TE: trailers"));
    CHECK(has(head, "Connection: te"));
    CHECK_FALSE(names(upstream_head(get_with("TE: gzip;q=0.5\r\n"), quiet()), "te"));
}

TEST_CASE("A4: framing is rewritten, never copied")
{
    CHECK(has(upstream_head(post_with("Content-Length: 0005\r\n"), quiet()), "Content-Length: 5"));
    CHECK(has(upstream_head(post_with("Transfer-Encoding: CHUNKED\r\n"), quiet()), "Transfer-Encoding: chunked"));
    CHECK(has(client_head("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n"), "Content-Length: 5"));
    CHECK(has(client_head("HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n"), "Transfer-Encoding: chunked"));
}

TEST_CASE("B28: requests are forwarded in origin-form, with the host that the caller selected")
{
    auto options = quiet();
    options.path = "/norm";
    options.query = "?q";
    options.host = "inner:9000";
    const auto head = upstream_head("GET http://a/%6eorm?q HTTP/1.1\r\nHost: a\r\n\r\n", options);
    CHECK(head.starts_with("GET /norm?q HTTP/1.1\r\nHost: inner:9000\r\n"));
    CHECK(head.find("Host: a") == std::string::npos);
}

TEST_CASE("B29: names with an underscore are dropped unless the route keeps them")
{
    CHECK_FALSE(names(upstream_head(get_with("My_Header: 1\r\n"), quiet()), "My_Header"));
    auto keeping = quiet();
    keeping.keep_underscore_names = true;
    CHECK(has(upstream_head(get_with("My_Header: 1\r\n"), keeping), "My_Header: 1"));
}

TEST_CASE("C2: Via is added after existing ones, and our own name in it is a loop")
{
    auto options = quiet();
    options.via = "gate-1";
    const auto head = upstream_head(get_with("Via: 1.0 first, 1.1 second (x)\r\n"), options);
    CHECK(has(head, "Via: 1.0 first, 1.1 second (x)"));
    CHECK(head.find("Via: 1.1 gate-1\r\n") > head.find("second"));
    CHECK(has(upstream_head("GET / HTTP/1.0\r\nHost: a\r\n\r\n", options), "Via: 1.0 gate-1"));
    CHECK(passed_through(parse_request(head)->head().fields, "GATE-1"));
    CHECK(passed_through(parse_request(get_with("Via: 1.1 x, HTTP/1.1  gate-1 (y)\r\n"))->head().fields, "gate-1"));
    CHECK_FALSE(
        passed_through(parse_request(get_with("Via: 1.1 gate-10, 1.1 my-gate-1\r\n"))->head().fields, "gate-1"));
    CHECK_FALSE(passed_through(parse_request(get_with("Via: gate-1\r\n"))->head().fields, "gate-1"));
    CHECK(describe(http_error::loop_detected).status == 508);
}

TEST_CASE("C3: the peer is appended to X-Forwarded-For; -Proto and -Host are ours unless the peer is trusted")
{
    upstream_head_options options;
    options.peer = "9.9.9.9";
    options.scheme = "https";
    options.original_host = "api.example.com";
    const auto bytes = get_with(
        "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\n"
        "X-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nx-forwarded-for: 2.2.2.2\r\n");
    auto head = upstream_head(bytes, options);
    CHECK(has(head, "X-Forwarded-For: 9.9.9.9"));
    CHECK(has(head, "X-Forwarded-Proto: https"));
    CHECK(has(head, "X-Forwarded-Host: api.example.com"));
    for (const auto claim : {"gopher", "evil", "1.1.1.1", "2.2.2.2", "Forwarded: ", "-Port"})
        CHECK(head.find(claim) == std::string::npos);
    CHECK(has(head, "X-Real-IP: 6.6.6.6"));

    options.x_forwarded_for = forwarded_for::off;
    options.x_forwarded_proto = options.x_forwarded_host = false;
    CHECK(upstream_head(bytes, options) == "GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: 6.6.6.6\r\n\r\n");
    options.x_forwarded_for = forwarded_for::append;
    options.x_forwarded_proto = options.x_forwarded_host = true;

    options.peer_trusted = true;
    head = upstream_head(bytes, options);
    CHECK(has(head, "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 9.9.9.9"));
    CHECK(has(head, "X-Forwarded-Proto: gopher"));
    CHECK(has(head, "X-Forwarded-Host: evil"));
    CHECK(head.find("https") == std::string::npos);

    options.x_forwarded_for = forwarded_for::replace;
    CHECK(has(upstream_head(bytes, options), "X-Forwarded-For: 9.9.9.9"));
    options.forwarded = true;
    options.peer = "2001:db8::1";
    CHECK(has(upstream_head(bytes, options),
              "Forwarded: for=6.6.6.6, for=\"[2001:db8::1]\";proto=https;host=\"api.example.com\""));
}

TEST_CASE("C4: an expectation is dropped unless the caller forwards it")
{
    const auto bytes = post_with("Expect: 100-continue\r\nContent-Length: 1\r\n");
    CHECK_FALSE(names(upstream_head(bytes, quiet()), "expect"));
    auto options = quiet();
    options.expect_continue = true;
    CHECK(has(upstream_head(bytes, options), "Expect: 100-continue"));
}

TEST_CASE("C7: h2c is never forwarded, a WebSocket handshake only when it was checked")
{
    const auto h2c = upstream_head(
        get_with("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"), quiet());
    CHECK(h2c == "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto bytes =
        get_with("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n");
    CHECK(upstream_head(bytes, quiet()) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    auto options = quiet();
    options.websocket = true;
    CHECK(upstream_head(bytes, options) ==
          "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n"
          "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n");
}

TEST_CASE("B31: Max-Forwards is decremented")
{
    CHECK(has(upstream_head("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 7\r\n\r\n", quiet()), "Max-Forwards: 6"));
    CHECK(has(upstream_head(get_with("Max-Forwards: 7\r\n"), quiet()), "Max-Forwards: 7"));
}

TEST_CASE("hop headers: a route's edits remove, set and add; the request id is one line; extra lines come last")
{
    header_edits edits;
    edits.remove("x-secret");
    edits.set("X-Env", "prod");
    edits.add("Accept", "text/plain");
    auto options = quiet();
    options.edits = &edits;
    options.request_id_header = "X-Correlation";
    options.request_id = "id-1";
    options.keep_alive = false;
    options.extra_fields = "X-Extra: 1\r\n";
    const auto head = upstream_head(
        get_with("X-SECRET: s\r\nx-env: dev\r\nX-ENV: test\r\nAccept: */*\r\nx-correlation: theirs\r\n"), options);
    CHECK(head == "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nX-Correlation: id-1\r\nConnection: close\r\nX-Env: "
                  "prod\r\nAccept: text/plain\r\n"
                  "X-Extra: 1\r\n\r\n");
    options.request_id_header = "X-Request-Id";
    CHECK(upstream_head(get_with("X-Request-ID: theirs\r\n"), options).find("theirs") == std::string::npos);
}

TEST_CASE("C5: an interim head is forwarded without framing, Date or Connection")
{
    CHECK(client_head("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n") ==
          "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
}

TEST_CASE("C6: HEAD and 304 keep their Content-Length, 204 never has one")
{
    CHECK(has(client_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", {}, method_id::head), "Content-Length: 5"));
    CHECK(has(client_head("HTTP/1.1 304 NM\r\nContent-Length: 5\r\n\r\n"), "Content-Length: 5"));
    CHECK(client_head("HTTP/1.1 204 NC\r\nContent-Length: 5\r\n\r\n").find("Content-Length") == std::string::npos);
    CHECK(client_head("HTTP/1.1 204 NC\r\nTransfer-Encoding: chunked\r\n\r\n").find("Transfer") == std::string::npos);
}

TEST_CASE("C11, C12: Date is added when missing; Connection tells the client whether it stays open")
{
    const std::string bytes = "HTTP/1.0 200\r\nContent-Length: 1\r\n\r\n";
    CHECK(client_head(bytes) == "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 1\r\n\r\n");
    CHECK(has(client_head(bytes, {}, method_id::get, "close"), "Connection: close"));
    CHECK(has(client_head(bytes, {}, method_id::get, "keep-alive"), "Connection: keep-alive"));
}

TEST_CASE("hop headers: our RateLimit fields replace the upstream's")
{
    const auto bytes =
        "HTTP/1.1 200 OK\r\nRateLimit: x\r\nRateLimit-Policy: y\r\nX-RateLimit-Reset: z\r\nContent-Length: 0\r\n\r\n";
    const auto head = client_head(bytes, {.extra_fields = "RateLimit: \"a\";r=1\r\n", .replaces_rate_limits = true});
    CHECK(has(head, "RateLimit: \"a\";r=1"));
    CHECK(head.find(": x") == std::string::npos);
    CHECK(head.find(": z") == std::string::npos);
    CHECK(has(client_head(bytes), "RateLimit: x"));
}

TEST_CASE("hop headers: X-RateLimit-Explain is for this gateway and is not forwarded")
{
    const auto head = upstream_head(get_with("x-ratelimit-EXPLAIN: 1\r\nX-RateLimit-Explained: 2\r\n"), quiet());
    CHECK(head.find("EXPLAIN") == std::string::npos);
    CHECK(has(head, "X-RateLimit-Explained: 2"));
}
