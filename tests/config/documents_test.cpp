// gateway.yaml, config/schema.json and docs/configuration.md agree with the loader. To regenerate the last two:
//   HEADGATE_REGENERATE=1 build/dev/test_config
#include "config/schema.hpp"
#include "config/values.hpp"
#include "config/yaml_tree.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

const char* how = "to write it anew: HEADGATE_REGENERATE=1 build/dev/test_config";

bool regenerate() { return std::getenv("HEADGATE_REGENERATE") != nullptr; }

// Returns gateway.yaml with every commented key made active.
std::string uncommented(const std::string& text)
{
    static const std::regex commented_key("^( *)# ( *(# )?(- )?[a-z0-9_]+:( .*)?)$");
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);) {
        std::smatch parts;
        while (std::regex_match(line, parts, commented_key))
            line = std::string(parts[1]) + std::string(parts[2]);
        out += line + "\n";
    }
    return out;
}

const std::set<std::string> maps_of_names = {"stores", "jwt", "api_keys", "keys", "chains", "upstreams"};

// Collects the paths of a tree as the key list writes them: listeners[].address, stores.NAME.type.
void collect(const node& n, const std::string& path, std::set<std::string>& out)
{
    out.insert(path);
    for (const node* item : n.items)
        collect(*item, path + "[]", out);
    for (const auto& [key, value] : n.entries)
        collect(*value, (path.empty() ? "" : path + ".") + (maps_of_names.contains(path) ? "NAME" : key->text), out);
}

// A struct that is used in two places is written out in one of them.
std::string where_written_out(std::string path)
{
    const std::pair<std::string, std::string> twins[] = {{"routes[].answers.", "answers."},
                                                         {"routes[].cost.", "chains.NAME.rules[].cost."},
                                                         {"plans.sources[].", "keys.NAME.sources[]."}};
    for (const auto& [there, here] : twins)
        if (path.starts_with(there))
            return here + path.substr(there.size());
    return path;
}

} // namespace

TEST_CASE("gateway.yaml loads without problems")
{
    const auto result = load_file("gateway.yaml", test_environment());
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    CHECK(result.config->listeners.at(0).address.text() == "127.0.0.1:8080");
}

TEST_CASE("gateway.yaml mentions every key of the loader, and none that the loader does not know")
{
    const auto text = uncommented(read_text("gateway.yaml"));
    std::vector<problem> problems;
    const auto tree = parse_yaml(text, 0, "gateway.yaml", problems);
    CAPTURE(joined(problems));
    REQUIRE(tree.root);
    std::set<std::string> written;
    collect(*tree.root, "", written);
    for (const auto& key : all_keys()) {
        CAPTURE(key.path);
        CHECK(written.contains(where_written_out(key.path)));
    }
    for (const auto& line : lines(load(text).problems))
        CHECK(line.find("there is no such key") == std::string::npos);
}

TEST_CASE("config/schema.json is the loader's schema")
{
    if (regenerate())
        std::ofstream("config/schema.json") << json_schema();
    const bool equal = read_text("config/schema.json") == json_schema();
    CHECK_MESSAGE(equal, "config/schema.json is not what config/describe*.cpp says; ", how);
}

TEST_CASE("the schema accepts the limits that the loader accepts, and no others")
{
    const auto schema = nlohmann::json::parse(json_schema());
    const auto& rule =
        schema.at("properties").at("chains").at("additionalProperties").at("properties").at("rules").at("items");
    const std::regex shape(rule.at("properties").at("limit").at("pattern").get<std::string>());
    for (const std::string text :
         {"60/minute", "5/s",    "100 per 90s",  "1/month", "5 / 10m",   " 7/week ", "10",   "unlimited", "blocked",
          "60rpm",     "60 rpm", "60/fortnight", "per 90s", "60per 90s", "60/",      "-1/s", "1.5/s",     "60/minute!",
          "",          "6 0/s",  "9/days",       "9/secs",  "1/us"}) {
        CAPTURE(text);
        CHECK(std::regex_search(text, shape) == bool(parse_limit(text)));
    }
    CHECK(std::regex_search("${LIMIT}/minute", shape));
}

TEST_CASE("the schema requires listeners and routes, which may be in an included file")
{
    const auto schema = nlohmann::json::parse(json_schema());
    CHECK(schema.at("anyOf") ==
          nlohmann::json::parse(R"([ {"required": ["listeners", "routes"]}, {"required": ["include"]} ])"));
}

TEST_CASE("the documents name every feature that is not implemented")
{
    const auto reference = read_text("docs/configuration.md"), readme = read_text("README.md");
    for (const auto& feature : features_not_built()) {
        CAPTURE(feature);
        CHECK(reference.find(feature) != std::string::npos);
        CHECK(readme.find(feature) != std::string::npos);
    }
}

TEST_CASE("docs/configuration.md lists every key as the loader knows it")
{
    const std::string begin = "<!-- keys: made from config/describe*.cpp -->\n", end = "<!-- end of keys -->\n";
    auto text = read_text("docs/configuration.md");
    const auto from = text.find(begin), to = text.find(end);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    const auto first = from + begin.size();
    if (regenerate()) {
        text.replace(first, to - first, keys_as_markdown() + "\n");
        std::ofstream("docs/configuration.md") << text;
    }
    const auto again = read_text("docs/configuration.md");
    const bool equal = again.substr(first, again.find(end) - first) == keys_as_markdown() + "\n";
    CHECK_MESSAGE(equal, "the tables of docs/configuration.md are not what config/describe*.cpp says; ", how);
}

TEST_CASE("every key has a description, and every required one an example")
{
    for (const auto& key : all_keys()) {
        CAPTURE(key.path);
        CHECK(!key.doc.empty());
        CHECK((!key.required || !key.example.empty()));
    }
}
