// What every check across fields works with: the typed model, and problems that point at the operator's text.
#pragma once

#include "config/loading.hpp"
#include "config/model.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace headgate::config {

struct checker
{
    gateway_config& config;
    const places& at;
    const loading& loaded;
    std::vector<problem>& problems;
    const outside& world;

    int hints_left = 100;
    // Names that something refers to; the rest is reported as unused.
    std::set<std::string> used_stores{}, used_keys{}, used_chains{}, used_upstreams{}, used_jwt{}, used_api_keys{};

    void error(const std::string& path, std::string message)
    {
        problems.push_back(at.make(severity::error, path, std::move(message)));
    }
    void warn(const std::string& path, std::string message)
    {
        problems.push_back(at.make(severity::warning, path, std::move(message)));
    }
    // False where a mistake has been reported already: nothing may be concluded from such a value.
    bool sound(const std::string& path) const { return !loaded.failed(path); }

    // A value in a message; what came from the environment is not shown.
    std::string quote(const std::string& path, const std::string& value) const
    {
        return at.is_from_environment(path) ? "the value from the environment" : "`" + value + "`";
    }

    template <class T>
    static std::vector<std::string> names(const std::map<std::string, T>& map)
    {
        std::vector<std::string> out;
        for (const auto& [name, value] : map)
            out.push_back(name);
        return out;
    }

    // Reports `name` unless `map` (the section `section`) has it.
    template <class T>
    bool must_exist(const std::map<std::string, T>& map, const std::string& section, const std::string& name,
                    const std::string& path, std::set<std::string>& used)
    {
        if (map.contains(name)) {
            used.insert(name);
            return true;
        }
        if (!sound(section) || !sound(path))
            return false;
        // Looking for near names costs the size of the map; thousands of mistakes are one mistake made often.
        auto hint = hints_left > 0 ? did_you_mean(name, names(map)) : std::string{};
        hints_left -= hints_left > 0 ? 1 : 0;
        if (hint.empty())
            hint = map.empty() ? "; `" + section + "` is empty, add it there" : "; add it there";
        error(path, quote(path, name) + " is not in `" + section + "`" + hint);
        return false;
    }

    template <class T>
    void warn_unused(const std::map<std::string, T>& map, const std::string& section, const std::set<std::string>& used)
    {
        for (const auto& [name, value] : map)
            if (!used.contains(name))
                warn(section + "." + name, "nothing uses this; remove it, or refer to it");
    }
};

void check_listeners(checker& c);
void check_stores(checker& c);
void check_identity(checker& c);
void check_chains(checker& c);
void check_routes(checker& c);
void warn_of_shadowed_routes(checker& c);
// A source list of a key or of plans.
void check_sources(checker& c, const std::vector<key_source>& sources, const std::string& path);
// All of them, and what nothing refers to.
void check_all(checker& c);

} // namespace headgate::config
