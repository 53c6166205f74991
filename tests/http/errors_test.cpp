#include "gateway/http/errors.hpp"
#include "tests/http/support.hpp"

#include <set>
#include <string>

using namespace headgate::http;
using namespace headgate::http::test;

namespace {

std::string body(http_error error, std::string_view request_id)
{
    byte_buffer out;
    append_error_body(out, error, request_id);
    return std::string(out.view());
}

} // namespace

TEST_CASE("errors: every error has a status with a phrase, a distinct code, a title and a culprit")
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

TEST_CASE("errors: a body is JSON that names the error, whatever bytes the request's id has")
{
    CHECK(
        body(http_error::no_route, "") ==
        R"({"type":"urn:headgate:error:no_route","title":"Nothing is configured for this address","status":404,"code":"no_route"})"
        "\n");
    CHECK(body(http_error::no_route, "q\"\n").find(R"("code":"no_route","request_id":"q\"\u000a"})") !=
          std::string::npos);
}

TEST_CASE("A15: an error closes the connection unless the message was read and understood")
{
    // A client's error leaves the connection open only if its message was read and understood.
    const std::set<http_error> understood{http_error::upgrade_version, http_error::bad_key,   http_error::missing_key,
                                          http_error::unknown_key,     http_error::bad_token, http_error::bad_cost,
                                          http_error::blocked};
    for (unsigned i = 1; i < static_cast<unsigned>(http_error::no_route); ++i) {
        const auto error = static_cast<http_error>(i);
        INFO(describe(error).code);
        CHECK(describe(error).closes != understood.contains(error));
    }
}

TEST_CASE("D1: a message error in an upstream's answer is an upstream error")
{
    for (unsigned i = 1; i < static_cast<unsigned>(http_error::count_); ++i)
        CHECK(describe(as_upstream_error(static_cast<http_error>(i))).to_blame == culprit::upstream);
    CHECK(as_upstream_error(http_error::bad_chunk) == http_error::upstream_bad_chunk);
    CHECK(as_upstream_error(http_error::none) == http_error::none);
}
