#include "gateway/answers/body_template.hpp"

#include "gateway/http/errors.hpp"
#include "gateway/http/text.hpp"

#include <utility>

namespace headgate {

namespace {

void append_markup_escaped(http::byte_buffer& out, std::string_view text)
{
    for (const char c : text) {
        switch (c) {
        case '&':
            out.append("&amp;");
            break;
        case '<':
            out.append("&lt;");
            break;
        case '>':
            out.append("&gt;");
            break;
        case '"':
            out.append("&quot;");
            break;
        case '\'':
            out.append("&#39;");
            break;
        default:
            out.append(c);
        }
    }
}

} // namespace

body_template::body_template(std::string_view text, std::string_view content_type)
    : escaping_(escaping_for(content_type))
{
    using place = std::pair<std::string_view, std::string_view values::*>;
    constexpr place places[] = {{"{rule}", &values::rule}, {"{limit}", &values::limit}, {"{wait}", &values::wait}};
    std::string before;
    while (!text.empty()) {
        const place* found = nullptr;
        for (const auto& candidate : places) {
            if (text.starts_with(candidate.first))
                found = &candidate;
        }
        if (found == nullptr) {
            before += text.front();
            text.remove_prefix(1);
            continue;
        }
        pieces_.push_back({std::exchange(before, {}), found->second});
        text.remove_prefix(found->first.size());
    }
    pieces_.push_back({std::move(before)});
}

void body_template::append_to(http::byte_buffer& out, const values& known) const
{
    for (const auto& part : pieces_) {
        out.append(part.text);
        if (part.place == nullptr)
            continue;
        const auto value = known.*part.place;
        switch (escaping_) {
        case escaping::none:
            out.append(value);
            break;
        case escaping::json:
            http::append_json_escaped(out, value);
            break;
        case escaping::markup:
            append_markup_escaped(out, value);
            break;
        }
    }
}

body_template::escaping body_template::escaping_for(std::string_view content_type)
{
    const auto type = http::trim(content_type.substr(0, content_type.find(';')));
    const auto is = [&](std::string_view name) { return http::equals_ignoring_case(type, name); };
    const auto ends = [&](std::string_view suffix) {
        return type.size() > suffix.size() &&
               http::equals_ignoring_case(type.substr(type.size() - suffix.size()), suffix);
    };
    if (is("application/json") || ends("+json"))
        return escaping::json;
    if (is("text/html") || is("text/xml") || is("application/xml") || ends("+xml"))
        return escaping::markup;
    return escaping::none;
}

} // namespace headgate
