#include "gateway/http/parameters.hpp"

#include <doctest/doctest.h>

using namespace headgate::http;

namespace {

struct outcome
{
    parameter_state state;
    std::string value;
    bool operator==(const outcome&) const = default;
};

outcome cookie(std::initializer_list<std::string_view> lines, std::string_view name)
{
    field_list fields;
    for (const auto line : lines) {
        fields.lines.push_back({"Cookie", line, field_id::cookie});
        fields.present |= bit(field_id::cookie);
    }
    std::string_view value;
    const auto state = find_cookie(fields, name, value);
    return {state, std::string(value)};
}

outcome query(std::string_view text, std::string_view name)
{
    byte_buffer scratch;
    std::string_view value;
    const auto state = find_query_parameter(text, name, scratch, value);
    return {state, std::string(value)};
}

using enum parameter_state;

} // namespace

TEST_CASE("cookies: the value of a name, over all lines; a repeated name is reported (K6)")
{
    CHECK(cookie({}, "id").state == absent);
    CHECK(cookie({"a=1; id=x; b=2"}, "id") == outcome{found, "x"});
    CHECK(cookie({"a=1", "id=x"}, "id").value == "x");
    CHECK(cookie({"id = x "}, "id").value == "x");
    CHECK(cookie({"id=a=b"}, "id").value == "a=b");
    CHECK(cookie({"id="}, "id").state == found);
    CHECK(cookie({"ID=x; xid=1; id2=3; id"}, "id").state == absent); // names are case-sensitive, and whole
    CHECK(cookie({"id=x; id=y"}, "id").state == repeated);
    CHECK(cookie({"id=x", "id=x"}, "id").state == repeated);
}

TEST_CASE("query: names and values are decoded, so that two spellings are one identity (K5)")
{
    CHECK(query("", "key").state == absent);
    CHECK(query("?", "key").state == absent);
    CHECK(query("?a=1&key=x&b", "key").value == "x");
    CHECK(query("?k%65y=%78", "key").value == "x");
    CHECK(query("?key=a+b%2Bc%00", "key").value == std::string("a b+c\0", 6));
    CHECK(query("?key", "key").value == "");
    CHECK(query("?key=a=b", "key").value == "a=b");
    CHECK(query("?Key=x&keys=1&ke=2", "key").state == absent);
    CHECK(query("?key=x&k%65y=x", "key").state == repeated);
}
