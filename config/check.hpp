// Checks that involve more than one field. They run on the typed model and report problems at their place in the file.
#pragma once

#include "config/description.hpp"
#include "config/model.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace headgate::config {

struct checker
{
    gateway_config& config;
    const places& at;
    const load_context& loaded;
    std::vector<problem>& problems;
    const environment& env;

    int hints_left = 100;
    // Names that are referred to; the others are reported as unused.
    std::set<std::string> used_stores{}, used_keys{}, used_chains{}, used_upstreams{}, used_jwt{}, used_api_keys{};

    void error(const std::string& path, std::string message)
    {
        problems.push_back(at.make(severity::error, path, std::move(message)));
    }
    void warn(const std::string& path, std::string message)
    {
        problems.push_back(at.make(severity::warning, path, std::move(message)));
    }
    // False when an error in this value has been reported: no check may rely on it.
    bool is_valid(const std::string& path) const { return !loaded.failed(path); }

    // Returns a value as messages show it; a value from the environment is not shown.
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
        if (!is_valid(section) || !is_valid(path))
            return false;
        // The search for similar names is linear in the map, so only the first errors get a hint.
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
                warn(section + "." + name, "this is not used; remove it, or refer to it");
    }
};

void check_listeners(checker& c);
void check_stores(checker& c);
void check_identity(checker& c);
void check_chains(checker& c);
void check_guards(checker& c);
void check_routes(checker& c);
void warn_of_invented_identities(checker& c);
void warn_of_shadowed_routes(checker& c);
// Warns of sources that no request can have, and of plans that change nothing.
void warn_of_unused_identity(checker& c);
// Checks the sources of a key or of plans.
void check_sources(checker& c, const std::vector<key_source>& sources, const std::string& path);
// Checks the overrides of a rule, and of plans, and replaces their entries by the full spelling of what they mean.
void check_overrides(checker& c, rule_config& rule, const std::string& path);
void check_plan_overrides(checker& c, plans_config& plans, const std::string& path);
// Runs all checks and warns of unused names.
void check_all(checker& c);

struct rule_complaint
{
    std::string key; // of the rule: limit, burst, initial…
    std::string message;
};

struct built_rule
{
    limiter::rule rule;
    std::vector<rule_complaint> complaints;
};

// Builds the limiter's rule, and reports what cannot be counted. Pure. `limit` is the limit of the rule, of a plan or
// of an override.
built_rule build_rule(const rule_config& config, const limit_value& limit,
                      std::shared_ptr<const limiter::time_zone> zone);

// Returns the minimum cost of a request, to compare with a burst: 1 unless the cost is fixed or reserved.
std::uint64_t minimum_cost(const cost_config& cost);

} // namespace headgate::config
