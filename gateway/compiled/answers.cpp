#include "gateway/compiled/answers.hpp"

#include "gateway/http/text.hpp"

namespace headgate {

namespace {

std::string content_type_of(const config::answers_config& from)
{
    if (!from.content_type.empty())
        return from.content_type;
    if (from.body_file.ends_with(".html"))
        return "text/html; charset=utf-8";
    if (from.body_file.ends_with(".json"))
        return "application/json";
    return "text/plain; charset=utf-8";
}

bool has_field(const std::map<std::string, std::string>& fields, std::string_view name)
{
    for (const auto& [known, _] : fields) {
        if (http::equals_ignoring_case(known, name))
            return true;
    }
    return false;
}

} // namespace

compiled_answers::compiled_answers(const config::answers_config& from) : config(&from)
{
    auto content_type = std::string("application/problem+json");
    if (from.has_own_body()) {
        content_type = content_type_of(from);
        body.emplace(from.body_template, content_type);
    }
    refusal_fields = "Content-Type: " + content_type + "\r\n";
    if (!has_field(from.headers, "Cache-Control")) // a refusal must not be cached, unless the operator configured it
        refusal_fields += "Cache-Control: no-store\r\n";
    for (const auto& [name, value] : from.headers)
        refusal_fields += name + ": " + value + "\r\n";
    for (const auto& network : from.explain_networks)
        explain_networks.add(network.text);
}

} // namespace headgate
