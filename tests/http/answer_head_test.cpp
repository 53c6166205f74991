#include "gateway/http/answer_head.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace headgate::http;

namespace {

std::string http1(const answer_head& head, unsigned minor_version, std::string_view connection = {})
{
    byte_buffer out;
    append_http1_head(out, head, frame_answer(head, minor_version), connection);
    return std::string(out.view());
}

} // namespace

TEST_CASE("answer head: framing and Connection are inserted at their marked places, otherwise after all lines")
{
    field_lines fields;
    fields.text().append("A: 1\r\n");
    CHECK(http1({.status = 200, .fields = &fields, .length = 5}, 1, "close") ==
          "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
    fields.place_framing();
    fields.text().append("B: 2\r\n");
    CHECK(http1({.status = 404, .fields = &fields, .length = 0}, 1, "close") ==
          "HTTP/1.1 404 Not Found\r\nA: 1\r\nContent-Length: 0\r\nB: 2\r\nConnection: close\r\n\r\n");
    fields.place_connection();
    fields.text().append("C: 3\r\n");
    CHECK(http1({.status = 200, .fields = &fields, .reason = "Fine"}, 1, "keep-alive") ==
          "HTTP/1.1 200 Fine\r\nA: 1\r\nTransfer-Encoding: chunked\r\nB: 2\r\nConnection: keep-alive\r\nC: 3\r\n\r\n");
    fields.clear();
    CHECK(http1({.status = 204, .fields = &fields, .has_body = false}, 1) == "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_CASE("C6: a length is sent where no body follows, C11: in HTTP/1.0 a body without one ends with the connection")
{
    field_lines fields;
    CHECK(frame_answer({.status = 304, .fields = &fields, .length = 7, .has_body = false}, 1) ==
          body_framing{body_kind::length, 7});
    CHECK(frame_answer({.status = 304, .fields = &fields, .has_body = false}, 0) == body_framing{});
    CHECK(frame_answer({.status = 200, .fields = &fields}, 1).kind == body_kind::chunked);
    CHECK(frame_answer({.status = 200, .fields = &fields}, 0).kind == body_kind::until_close);
}

TEST_CASE("C7: a 101 names the only supported upgrade")
{
    field_lines fields;
    CHECK(http1({.status = 101, .fields = &fields, .has_body = false}, 1, "upgrade") ==
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
}

TEST_CASE("answer head: its fields can be read one by one, for protocols whose fields are not text")
{
    field_lines fields;
    fields.text().append("A: 1\r\nEmpty: \r\nB:  two words \r\n");
    std::vector<std::pair<std::string, std::string>> seen;
    fields.each([&](std::string_view name, std::string_view value) { seen.emplace_back(name, value); });
    CHECK(seen == std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"Empty", ""}, {"B", "two words"}});
}
