#include "config/show.hpp"

#include "config/shapes.hpp"

#include <algorithm>

namespace headgate::config {

namespace {

json as_json(const gateway_config& config)
{
    const dumping d{config.places.get()};
    return type_of<gateway_config>().dump(d, {}, {}, &config);
}

bool is_plain(const std::string& text)
{
    const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
               c == '.' || c == '-';
    });
    return simple && !text.empty() && text.front() != '-' && text.front() != '.' && text != "null";
}

std::string quoted(std::string text)
{
    // Otherwise the loader would look for a variable when it reads the dump back.
    for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3))
        text.insert(at, "$");
    return is_plain(text) ? text : json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void write_yaml(const json& value, std::string& out, std::size_t indent, bool after_dash)
{
    const auto margin = [&](bool first) { return first && after_dash ? std::string{} : std::string(indent, ' '); };
    bool first = true;
    const auto put = [&](const json& child, std::size_t deeper, bool dash) {
        if (child.is_structured() && !child.empty()) {
            out += dash ? "" : "\n";
            write_yaml(child, out, deeper, dash);
        } else if (child.is_structured()) {
            out += std::string(dash ? "" : " ") + (child.is_array() ? "[]" : "{}") + "\n";
        } else {
            out += (dash ? "" : " ") + (child.is_string() ? quoted(child.get<std::string>()) : child.dump()) + "\n";
        }
    };
    if (value.is_array()) {
        for (const auto& item : value) {
            out += margin(first) + "- ";
            put(item, indent + 2, true);
            first = false;
        }
        return;
    }
    for (const auto& [name, child] : value.items()) {
        out += margin(first) + quoted(name) + ":";
        put(child, indent + 2, false);
        first = false;
    }
}

std::string for_table(std::string text)
{
    for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
        text.insert(at, "\\");
    return text;
}

} // namespace

std::string dump(const gateway_config& config)
{
    std::string out;
    write_yaml(as_json(config), out, 0, false);
    return out;
}

std::string dump_json(const gateway_config& config)
{
    return as_json(config).dump(2, ' ', false, json::error_handler_t::replace);
}

std::string json_schema()
{
    json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
             {"title", "headgate configuration"},
             {"description", "Made from config/describe*.cpp; a test keeps it equal to the loader."}};
    const auto whole = type_of<gateway_config>().schema({});
    out.update(whole);
    out["type"] = "object";
    // With `include`, another file may hold what this one lacks.
    out.erase("required");
    return out.dump(1) + "\n";
}

key_list all_keys()
{
    key_list out;
    type_of<gateway_config>().list_keys(out, {});
    return out;
}

std::string keys_as_markdown()
{
    std::string out, section;
    for (const auto& key : all_keys()) {
        const auto top = key.path.substr(0, key.path.find_first_of(".["));
        if (top != section) {
            section = top;
            out += "\n### " + section +
                   "\n\n| key | what it is | type | default | bounds | example |\n|---|---|---|---|---|---|\n";
        }
        const auto code = [](const std::string& text) {
            return text.empty() ? std::string{} : "`" + for_table(text) + "`";
        };
        out += "| `" + key.path + "` | " + for_table(key.doc) +
               (key.only_with.empty() ? "" : " Only with `" + key.only_with + "`.") + " | " + for_table(key.type) +
               " | " + (key.required ? "**required**" : code(key.default_value)) + " | " + key.bounds + " | " +
               code(key.example) + " |\n";
    }
    return out;
}

} // namespace headgate::config
