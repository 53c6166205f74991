// base64url and JSON: text with more than one possible reading is refused.
#include "gateway/identity/base64url.hpp"
#include "gateway/identity/strict_json.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;

TEST_CASE("base64url: every length and every byte is decoded to the original")
{
    std::string bytes;
    for (int i = 0; i < 300; ++i) {
        CHECK(decode_base64url(encode_base64url(bytes)) == bytes);
        bytes.push_back(static_cast<char>(i * 7));
    }
}

TEST_CASE("base64url: the examples of RFC 4648, without padding")
{
    CHECK(decode_base64url("") == "");
    CHECK(decode_base64url("Zg") == "f");
    CHECK(decode_base64url("Zm8") == "fo");
    CHECK(decode_base64url("Zm9v") == "foo");
    CHECK(decode_base64url("Zm9vYg") == "foob");
    CHECK(decode_base64url("-_-_") == "\xfb\xff\xbf");
}

TEST_CASE("base64url: padding, another alphabet, blanks, a single digit and unused bits that are set are refused")
{
    for (const std::string_view text : {"Zg==", "Zm8=", "Zm9v=", "=", "+/+/", "Zm 9v", "Zm9v\n", " Zm9v", "Z", "Zm9vY",
                                        "Zh", "Zm9", "Zv", "Z\xc3\xa9"}) {
        CAPTURE(text);
        CHECK_FALSE(decode_base64url(text));
    }
    CHECK_FALSE(decode_base64url(std::string_view("Zm9\0", 4)));
}

TEST_CASE("base64url: of all texts of two and three digits, exactly the canonical encodings are read")
{
    std::size_t two = 0, three = 0;
    const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (const char a : digits)
        for (const char b : digits) {
            two += decode_base64url(std::string{a, b}).has_value();
            for (const char c : digits)
                three += decode_base64url(std::string{a, b, c}).has_value();
        }
    CHECK(two == 256);
    CHECK(three == 65'536);
}

TEST_CASE("strict JSON: valid text gives the value that the library gives")
{
    const std::string text =
        R"( {"a":[1,-2,3.5,{"b":[[],{}]}],"c":null,"d":true,"e":"\u00e9\n","f":{"a":{"a":18446744073709551615}}} )";
    const auto parsed = parse_strict_json(text);
    CHECK(parsed.complaint == "");
    CHECK(parsed.value == nlohmann::json::parse(text));
    CHECK(parse_strict_json("7").value == 7);
}

TEST_CASE("strict JSON: a duplicate name is refused at any depth, however it is escaped")
{
    for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"({"x":{"a":1,"a":2}})",
                             R"([{"a":1},{"a":1,"\u0061":2}])", R"({"":1,"":2})"}) {
        CAPTURE(text);
        CHECK(parse_strict_json(text).complaint.find("occurs twice in one object") != std::string::npos);
    }
    CHECK(parse_strict_json(R"([{"a":1},{"a":{"a":2}}])"));
}

TEST_CASE("strict JSON: sixteen levels are read, seventeen or a million are refused")
{
    const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
    CHECK(parse_strict_json(nested(16)));
    CHECK(parse_strict_json(nested(17)).complaint == "this is nested more than 16 levels deep");
    CHECK(parse_strict_json(std::string(1'000'000, '[')).complaint == "this is nested more than 16 levels deep");
    std::string objects;
    for (int i = 0; i < 17; ++i)
        objects += R"({"a":)";
    CHECK(parse_strict_json(objects).complaint == "this is nested more than 16 levels deep");
}

TEST_CASE("strict JSON: invalid JSON is refused, and the complaint does not repeat it")
{
    for (const std::string_view text :
         {"", " ", "{", "{}x", "{} {}", "{'a':1}", R"({"a":1,})", R"({"a":01})", R"({"a":NaN})", R"({"a":1e999})",
          "{\"a\":\"\xff\"}", R"({"a":"\ud800"})", "// c\n{}", R"({"k":"hunter2" "k2":1})"}) {
        CAPTURE(text);
        const auto parsed = parse_strict_json(text);
        CHECK_FALSE(parsed);
        CHECK(parsed.complaint.find("hunter2") == std::string::npos);
    }
}
