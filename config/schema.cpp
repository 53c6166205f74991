#include "config/schema.hpp"

#include "config/describe.hpp"

namespace headgate::config {

namespace {

std::string for_table(std::string text)
{
    for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
        text.insert(at, "\\");
    return text;
}

} // namespace

std::string json_schema()
{
    json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
             {"title", "headgate configuration"},
             {"description", "Generated from config/describe*.cpp; a test compares it with the loader."}};
    const auto whole = type_of<gateway_config>().schema({});
    out.update(whole);
    out["type"] = "object";
    // A key that is missing here may be in an included file.
    out["anyOf"] = {{{"required", out["required"]}}, {{"required", {"include"}}}};
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
