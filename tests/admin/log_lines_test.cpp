// The two formats of a line, without a gateway.
#include "gateway/log/access_log.hpp"
#include "gateway/log/once_per.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate;
using namespace std::chrono_literals;

namespace {

const log_entry::wall_time moment{std::chrono::sys_days{std::chrono::year{2026} / 11 / 10} + 13h + 55min + 36s + 7ms};

log_entry full_entry()
{
    return {.began = moment,
            .client = "192.0.2.7",
            .method = "GET",
            .host = "api.example.com",
            .path = "/x",
            .query = "?a=1&b=2",
            .referer = "http://example.com/",
            .agent = "curl/7.88",
            .status = 200,
            .bytes_in = 120,
            .bytes_out = 330,
            .body_out = 123,
            .route = "api",
            .upstream = "up",
            .server = "10.0.0.1:9000",
            .request_id = "abc",
            .duration = 12'034us,
            .connect = 5us,
            .first_byte = 11'000us,
            .error = "upstream_truncated",
            .limit = log_entry::verdict::passed};
}

std::string json_of(const log_entry& entry)
{
    http::byte_buffer out;
    log_clock clock;
    append_json_line(out, entry, clock);
    return std::string(out.view());
}

std::string combined_of(const log_entry& entry)
{
    http::byte_buffer out;
    log_clock clock;
    append_combined_line(out, entry, clock);
    return std::string(out.view());
}

} // namespace

TEST_CASE("json: every field that is known, and none that is not")
{
    CHECK(
        json_of(full_entry()) ==
        R"({"time":"2026-11-10T13:55:36.007Z","client":"192.0.2.7","method":"GET","host":"api.example.com","path":"/x",)"
        R"("query":"a=1&b=2","status":200,"bytes_in":120,"bytes_out":330,"route":"api","upstream":"up",)"
        R"("server":"10.0.0.1:9000","request_id":"abc","duration_ms":12.034,"connect_ms":0.005,"first_byte_ms":11.000,)"
        R"("error":"upstream_truncated","limit":"passed"})"
        "\n");
    CHECK(json_of({.began = moment, .client = "2001:db8::1", .status = 400}) ==
          R"({"time":"2026-11-10T13:55:36.007Z","client":"2001:db8::1","status":400,"bytes_in":0,"bytes_out":0,)"
          R"("duration_ms":0.000,"limit":"none"})"
          "\n");
}

TEST_CASE("combined: the usual format")
{
    CHECK(combined_of(full_entry()) == "192.0.2.7 - - [10/Nov/2026:13:55:36 +0000] \"GET /x?a=1&b=2 HTTP/1.1\" 200 123 "
                                       "\"http://example.com/\" \"curl/7.88\"\n");
    CHECK(combined_of({.began = moment, .client = "192.0.2.7", .status = 400}) ==
          "192.0.2.7 - - [10/Nov/2026:13:55:36 +0000] \"-\" 400 0 \"-\" \"-\"\n");
}

TEST_CASE("every byte that a client can send is restored by a JSON parser, and never breaks a line")
{
    for (int byte = 0; byte < 256; ++byte) {
        CAPTURE(byte);
        const std::string text = std::string("a") + static_cast<char>(byte) + "z";
        auto entry = full_entry();
        entry.path = entry.host = entry.method = entry.request_id = text;
        const std::string query = "?" + text;
        entry.query = query;
        const auto line = json_of(entry);
        CHECK(std::count_if(line.begin(), line.end(), [](char c) { return c < 0x20 || c == 0x7f; }) == 1); // its end
        const auto parsed = nlohmann::json::parse(line);
        // Bytes above ASCII are shown as the code points of their values.
        std::string wanted = "a";
        if (byte < 0x80) {
            wanted += static_cast<char>(byte);
        } else {
            wanted += static_cast<char>(0xc0 | byte >> 6);
            wanted += static_cast<char>(0x80 | (byte & 0x3f));
        }
        wanted += "z";
        for (const char* field : {"path", "host", "method", "query", "request_id"})
            CHECK(parsed[field].get<std::string>() == wanted);
    }
}

TEST_CASE("combined: quotes, backslashes, control bytes and UTF-8 are hex escapes")
{
    auto entry = full_entry();
    entry.path = "/\"\\\n";
    entry.query = {};
    entry.agent = "caf\xc3\xa9\x7f";
    CHECK(combined_of(entry) == "192.0.2.7 - - [10/Nov/2026:13:55:36 +0000] \"GET /\\x22\\x5C\\x0A HTTP/1.1\" 200 123 "
                                "\"http://example.com/\" \"caf\\xC3\\xA9\\x7F\"\n");
}

TEST_CASE("a client cannot make a line longer than the maximum")
{
    const std::string endless(1'000'000, '"');
    auto entry = full_entry();
    entry.path = entry.host = entry.method = entry.query = entry.referer = entry.agent = endless;
    CHECK(json_of(entry).size() < 40'000);
    CHECK(combined_of(entry).size() < 80'000);
    CHECK(nlohmann::json::parse(json_of(entry))["path"].get<std::string>() == endless.substr(0, 8192));
}

TEST_CASE("a message that is due once per period is due to one caller, then again after the period")
{
    using namespace std::chrono_literals;
    headgate::once_per hint(1min);
    const auto began = headgate::once_per::clock::now();
    CHECK(hint.is_due(began));
    CHECK_FALSE(hint.is_due(began));
    CHECK_FALSE(hint.is_due(began + 59s));
    CHECK(hint.is_due(began + 1min));
    CHECK_FALSE(hint.is_due(began + 1min));
}

TEST_CASE("the clock's text follows the time forwards and backwards, over every boundary")
{
    log_clock clock;
    http::byte_buffer out;
    const auto shown = [&](log_entry::wall_time t) {
        out.clear();
        out.append(clock.rfc3339(t), ' ');
        out.append(clock.common(t));
        return std::string(out.view());
    };
    using namespace std::chrono;
    const log_entry::wall_time new_year{sys_days{year{2028} / 1 / 1}};
    CHECK(shown(new_year - 1us) == "2027-12-31T23:59:59.999Z 31/Dec/2027:23:59:59 +0000");
    CHECK(shown(new_year) == "2028-01-01T00:00:00.000Z 01/Jan/2028:00:00:00 +0000");
    CHECK(shown(new_year - 1s) == "2027-12-31T23:59:59.000Z 31/Dec/2027:23:59:59 +0000");
    CHECK(shown(new_year + days{59}) == "2028-02-29T00:00:00.000Z 29/Feb/2028:00:00:00 +0000");
    CHECK(shown(log_entry::wall_time{}) == "1970-01-01T00:00:00.000Z 01/Jan/1970:00:00:00 +0000");
}
