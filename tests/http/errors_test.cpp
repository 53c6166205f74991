#include "gateway/http/errors.hpp"
#include "tests/http/support.hpp"

#include <set>
#include <string>

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

std::string answer(http_error error, const error_response_options& options)
{
    byte_buffer out;
    append_error_response(out, error, options);
    return std::string(out.view());
}

constexpr std::string_view date = "Mon, 01 Jan 2024 00:00:00 GMT";

} // namespace

TEST_CASE("errors: every error has a status with a phrase, a code of its own, a title and someone to blame")
{
    std::set<std::string_view> codes;
    std::set<unsigned> statuses;
    for (unsigned i = 1; i < static_cast<unsigned>(http_error::count_); ++i) {
        const auto& row = describe(static_cast<http_error>(i));
        INFO(row.code);
        CHECK(codes.insert(row.code).second);
        CHECK_FALSE(row.title.empty());
        CHECK_FALSE(reason_phrase(row.status).empty());
        CHECK((row.to_blame == culprit::upstream) == row.code.starts_with("upstream_"));
        statuses.insert(row.status);
    }
    for (const int status : {400, 404, 405, 408, 411, 413, 414, 417, 426, 431, 500, 501, 502, 503, 504, 505, 508})
        CHECK(statuses.contains(static_cast<unsigned>(status)));
    CHECK(reason_phrase(799).empty());
}

TEST_CASE("C12: our own answers carry Date, Content-Length, no-store and Connection, and the length is right")
{
    for (const auto& options :
         {error_response_options{.date = date, .request_id = "r-1", .request_id_header = "X-Request-Id"},
          error_response_options{
              .date = date, .request_id = "a\"\\\n\xff", .detail = "Say \"please\"", .keep_alive = true},
          error_response_options{.date = date}}) {
        const auto bytes = answer(http_error::no_route, options);
        const auto response = parse_response(bytes);
        REQUIRE(response->state == parse_state::done);
        response_framing framing;
        CHECK(frame_response(method_id::get, response->head(), framing) == http_error::none);
        CHECK(response->head().status == 404);
        CHECK(framing.body.length == bytes.size() - response->parser.consumed());
        CHECK(response->head().fields.find(field_id::date)->value == date);
        CHECK(response->head().fields.find("cache-control")->value == "no-store");
        CHECK(response->head().fields.find(field_id::content_type)->value == "application/problem+json");
        CHECK(framing.reusable == options.keep_alive);
    }
    CHECK(answer(http_error::no_route, {.date = date, .request_id = "q\"\n", .request_id_header = {}})
              .find(R"("request_id":"q\"\u000a"})") != std::string::npos);
    CHECK(
        answer(http_error::no_route, {.date = date})
            .find(
                R"({"type":"urn:headgate:error:no_route","title":"Nothing is configured for this address","status":404,"code":"no_route"})") !=
        std::string::npos);
}

TEST_CASE("A15: an error that leaves the connection in doubt closes it, whatever the session would like")
{
    CHECK(answer(http_error::bad_framing, {.date = date, .keep_alive = true}).find("Connection: close\r\n") !=
          std::string::npos);
    CHECK(answer(http_error::no_route, {.date = date, .keep_alive = true}).find("Connection") == std::string::npos);
    CHECK(answer(http_error::no_route, {.date = date, .keep_alive = true, .http_1_0 = true})
              .find("Connection: keep-alive\r\n") != std::string::npos);
    // Of the client's faults only those leave the connection open whose message was read and understood.
    const std::set<http_error> understood{http_error::upgrade_version, http_error::bad_key,  http_error::missing_key,
                                          http_error::bad_token,       http_error::bad_cost, http_error::blocked};
    for (unsigned i = 1; i < static_cast<unsigned>(http_error::no_route); ++i) {
        const auto error = static_cast<http_error>(i);
        INFO(describe(error).code);
        CHECK(describe(error).closes != understood.contains(error));
    }
}

TEST_CASE("errors: an answer to HEAD has the length but not the body, and extra fields are whole lines")
{
    const auto get = answer(http_error::method_not_allowed, {.date = date, .extra_fields = "Allow: GET\r\n"});
    const auto head =
        answer(http_error::method_not_allowed, {.date = date, .extra_fields = "Allow: GET\r\n", .head_request = true});
    CHECK(get.starts_with(head));
    CHECK(head.ends_with("\r\n\r\n"));
    CHECK(head.find("\r\nAllow: GET\r\n") != std::string::npos);
}

TEST_CASE("D1: a client's fault seen in an upstream's message is the upstream's")
{
    for (unsigned i = 1; i < static_cast<unsigned>(http_error::count_); ++i)
        CHECK(describe(as_upstream_error(static_cast<http_error>(i))).to_blame == culprit::upstream);
    CHECK(as_upstream_error(http_error::bad_chunk) == http_error::upstream_bad_chunk);
    CHECK(as_upstream_error(http_error::none) == http_error::none);
}
