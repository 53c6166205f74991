#include "tests/config/support.hpp"

#include <fstream>
#include <sstream>

namespace headgate::config::testing {

namespace {

// A TZif file of version 2 without transitions; its footer has the rules of Paris.
std::string paris()
{
    std::string header = "TZif2";
    header.resize(20, '\0');
    const auto counts = [](char types, char chars) {
        std::string out(24, '\0');
        out[19] = types;
        out[23] = chars;
        return out;
    };
    const std::string type = std::string("\0\0\x0e\x10\0\0", 6) + std::string("CET\0", 4);
    const std::string block = header + counts(1, 4) + type;
    return block + block + "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
}

} // namespace

environment test_environment()
{
    return {.variable = [](const std::string& name) -> std::optional<std::string> {
                return name == "HEADGATE_TEST_TOKEN" ? std::optional<std::string>("tok-secret") : std::nullopt;
            },
            .read = [](const std::filesystem::path& file, std::uintmax_t most) -> file_text {
                if (file == "/usr/share/zoneinfo/Europe/Paris")
                    return {paris(), {}};
                return read_regular_file(file, most);
            }};
}

load_result load(const std::string& yaml) { return load_text(yaml, "t.yaml", test_environment()); }

std::vector<std::string> lines(const std::vector<problem>& problems)
{
    std::vector<std::string> out;
    for (const auto& p : problems)
        out.push_back(to_string(p));
    return out;
}

std::string joined(const std::vector<problem>& problems)
{
    std::string out;
    for (const auto& line : lines(problems))
        out += line + "\n";
    return out;
}

std::string read_text(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::string with_rule(const std::string& rule)
{
    return "listeners: [ { address: 127.0.0.1:0 } ]\n"
           "stores: { local: { type: memory } }\n"
           "keys: { user: { sources: [ { header: X-API-Key } ], new_identities: 100/hour } }\n"
           "chains: { api: { rules: [ { name: r, key: user, " +
           rule +
           " } ] } }\n"
           "upstreams: { demo: { echo: true } }\n"
           "routes: [ { name: all, chains: api, upstream: demo } ]\n";
}

} // namespace headgate::config::testing
