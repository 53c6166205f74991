// An operator's body of a refusal: values replace their placeholders, and are escaped for the body's media type.
#include "gateway/answers/body_template.hpp"

#include <doctest/doctest.h>

using headgate::body_template;

namespace {

std::string filled(std::string_view text, std::string_view type, const body_template::values& known)
{
    headgate::http::byte_buffer out;
    body_template(text, type).append_to(out, known);
    return std::string(out.view());
}

const body_template::values usual{.rule = "minute", .limit = "60 per minute", .wait = "12"};

} // namespace

TEST_CASE("body template: values replace their placeholders, other braces stay")
{
    const std::pair<std::string_view, std::string_view> rows[] = {
        {"", ""},
        {"slow down", "slow down"},
        {"{rule}", "minute"},
        {"{rule}{limit}{wait}{rule}", "minute60 per minute12minute"},
        {"a {wait} b", "a 12 b"},
        {"{{rule}}", "{minute}"},
        {"{Rule} {rules} { rule} {rule", "{Rule} {rules} { rule} {rule"},
        {R"({"rule":"{rule}","wait":{wait},"of":{}})", R"({"rule":"minute","wait":12,"of":{}})"},
    };
    for (const auto& [text, expected] : rows)
        CHECK(filled(text, "text/plain", usual) == expected);
}

TEST_CASE("body template: values are escaped as the media type needs it")
{
    const body_template::values odd{.rule = "a\"\\<&>'\n", .limit = "60", .wait = "-"};
    const std::string json = "a\\\"\\\\<&>'\\u000a", markup = "a&quot;\\&lt;&amp;&gt;&#39;\n", plain = "a\"\\<&>'\n";
    const std::pair<std::string_view, std::string> rows[] = {
        {"application/json", json},
        {"Application/JSON ; charset=utf-8", json},
        {"application/problem+json", json},
        {"text/html; charset=utf-8", markup},
        {"TEXT/HTML", markup},
        {"application/xhtml+xml", markup},
        {"application/xml", markup},
        {"text/plain", plain},
        {"text/plain; a=application/json", plain},
        {"", plain},
    };
    for (const auto& [type, expected] : rows) {
        CAPTURE(type);
        CHECK(filled("{rule}", type, odd) == expected);
    }
    // The operator's own text is not escaped.
    CHECK(filled("<b title=\"{limit}\">", "text/html", odd) == "<b title=\"60\">");
}
