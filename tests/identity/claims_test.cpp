#include "gateway/identity/token_claims.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate::identity;
using namespace headgate::identity::testing;
using namespace std::chrono_literals;

namespace {

std::string claim(std::string_view payload, std::string_view name)
{
    return token_claims(nlohmann::json::parse(payload)).claim_text(name).value_or("-");
}

std::string state(std::string_view payload, const claim_rules& rules, std::chrono::system_clock::time_point now)
{
    return std::string(name_of(check_claims(nlohmann::json::parse(payload), rules, now)));
}

} // namespace

TEST_CASE("claims: a string, an integer or a boolean is an identity; other types are absent")
{
    const struct
    {
        const char* value;
        const char* text; // "-": absent
    } table[] = {
        {R"("alice")", "alice"},
        {R"("")", ""},
        {R"(" Alice\u00e9 ")", " Alice\xc3\xa9 "},
        {R"("7")", "7"},
        {"7", "7"},
        {"0", "0"},
        {"-7", "-7"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "-"}, // no integer type holds it
        {"true", "true"},
        {"false", "false"},
        {"7.0", "-"},
        {"7.5", "-"},
        {"7e0", "-"},
        {"null", "-"},
        {"[]", "-"},
        {R"(["alice"])", "-"},
        {"{}", "-"},
        {R"({"id":"alice"})", "-"},
    };
    for (const auto& [value, text] : table) {
        CAPTURE(value);
        CHECK(claim(R"({"sub":)" + std::string(value) + "}", "sub") == text);
    }
}

TEST_CASE("claims: a dotted name selects a member of an object only if no claim has that exact name")
{
    const struct
    {
        const char* payload;
        const char* name;
        const char* text;
    } table[] = {
        {R"({"org":{"id":"inner"}})", "org.id", "inner"},
        {R"({"org.id":"literal","org":{"id":"inner"}})", "org.id", "literal"},
        {R"({"org.id":null,"org":{"id":"inner"}})", "org.id", "-"},
        {R"({"a":{"b":{"c":7}}})", "a.b.c", "7"},
        {R"({"a":{"b.c":7,"b":{"c":8}}})", "a.b.c", "7"},
        {R"({"org":"text"})", "org.id", "-"},
        {R"({"org":[{"id":"x"}]})", "org.id", "-"},
        {R"({"org":["x"]})", "org.0", "-"},
        {R"({"org":{"id":{}}})", "org.id", "-"},
        {R"({"org":{}})", "org.id", "-"},
        {R"({})", "org.id", "-"},
        {R"({"org":{"id":"x"}})", "org", "-"},
        {R"({"org":{"id":"x"}})", "org.", "-"},
        {R"({"org":{"id":"x"}})", ".", "-"},
        {R"({"org":{"id":"x"}})", "", "-"},
        {R"({"":{"":"x"}})", ".", "x"},
        {R"({"sub":"x"})", "Sub", "-"},
    };
    for (const auto& [payload, name, text] : table) {
        CAPTURE(payload);
        CAPTURE(name);
        CHECK(claim(payload, name) == text);
    }
    CHECK_FALSE(token_claims().claim_text("sub"));
}

TEST_CASE("claims: a token expires at exp plus the leeway, to the microsecond")
{
    const claim_rules none, half_a_minute{.leeway = 30s};
    const auto* payload = R"({"exp":1000})";
    CHECK(state(payload, none, at_second(999)) == "valid");
    CHECK(state(payload, none, at_second(1000) - 1us) == "valid");
    CHECK(state(payload, none, at_second(1000)) == "expired");
    CHECK(state(payload, none, at_second(1001)) == "expired");
    CHECK(state(payload, half_a_minute, at_second(1029)) == "valid");
    CHECK(state(payload, half_a_minute, at_second(1030) - 1us) == "valid");
    CHECK(state(payload, half_a_minute, at_second(1030)) == "expired");
    CHECK(state(payload, half_a_minute, at_second(1031)) == "expired");
    CHECK(state(R"({"exp":1000.5})", none, at_second(1000) + 499ms) == "valid");
    CHECK(state(R"({"exp":1000.5})", none, at_second(1000) + 500ms) == "expired");
    CHECK(state(R"({"exp":0})", none, at_second(0)) == "expired");
    CHECK(state(R"({"exp":253402300799})", none, at_second(9'000'000'000)) == "valid");
}

TEST_CASE("claims: a token is valid from nbf minus the leeway, to the microsecond")
{
    const claim_rules none, half_a_minute{.leeway = 30s};
    const auto* payload = R"({"nbf":1000})";
    CHECK(state(payload, none, at_second(999)) == "not_yet_valid");
    CHECK(state(payload, none, at_second(1000) - 1us) == "not_yet_valid");
    CHECK(state(payload, none, at_second(1000)) == "valid");
    CHECK(state(payload, half_a_minute, at_second(969)) == "not_yet_valid");
    CHECK(state(payload, half_a_minute, at_second(970) - 1us) == "not_yet_valid");
    CHECK(state(payload, half_a_minute, at_second(970)) == "valid");
    CHECK(state(R"({"nbf":253402300799})", none, at_second(1000)) == "not_yet_valid");
}

TEST_CASE("claims: without exp and nbf a token is valid at any time, whatever its iat")
{
    CHECK(state("{}", {}, at_second(0)) == "valid");
    CHECK(state("{}", {}, at_second(9'000'000'000)) == "valid");
    CHECK(state(R"({"iat":5000})", {}, at_second(1000)) == "valid");
}

TEST_CASE("claims: a token with an exp, nbf or iat that is not a time is malformed")
{
    for (const std::string name : {"exp", "nbf", "iat"})
        for (const std::string value : {R"("1000")", "null", "true", "[]", "{}", "-1", "-0.5", "253402300800", "1e300",
                                        "1700000000000", "18446744073709551615", "-9223372036854775808"}) {
            CAPTURE(name);
            CAPTURE(value);
            CHECK(state("{\"" + name + "\":" + value + "}", {}, at_second(1000)) == "malformed");
        }
}

TEST_CASE("claims: the issuer must equal the configured one, byte for byte")
{
    const claim_rules rules{.issuer = "https://login.example.com/"};
    CHECK(state(R"({"iss":"https://login.example.com/"})", rules, at_second(0)) == "valid");
    for (const char* payload :
         {"{}", R"({"iss":"https://login.example.com"})", R"({"iss":"HTTPS://login.example.com/"})", R"({"iss":""})",
          R"({"iss":null})", R"({"iss":["https://login.example.com/"]})"}) {
        CAPTURE(payload);
        CHECK(state(payload, rules, at_second(0)) == "wrong_issuer");
    }
    CHECK(state(R"({"iss":"anybody"})", {}, at_second(0)) == "valid");
}

TEST_CASE("claims: one audience of the token must be a configured one")
{
    const claim_rules rules{.audience = {"api", "admin"}};
    for (const char* payload : {R"({"aud":"api"})", R"({"aud":"admin"})", R"({"aud":["api"]})",
                                R"({"aud":["other","admin"]})", R"({"aud":["api","api"]})"}) {
        CAPTURE(payload);
        CHECK(state(payload, rules, at_second(0)) == "valid");
    }
    for (const char* payload : {"{}", R"({"aud":"other"})", R"({"aud":"ap"})", R"({"aud":"api "})", R"({"aud":""})",
                                R"({"aud":[]})", R"({"aud":["other"]})", R"({"aud":["api",7]})", R"({"aud":[["api"]]})",
                                R"({"aud":{"api":true}})", R"({"aud":null})", R"({"aud":true})"}) {
        CAPTURE(payload);
        CHECK(state(payload, rules, at_second(0)) == "wrong_audience");
    }
    CHECK(state(R"({"aud":"anybody"})", {}, at_second(0)) == "valid");
}
