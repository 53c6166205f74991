// Checks of overrides: each entry names one identity. Replaces the entries' texts by their full spelling.
#include "config/check.hpp"
#include "config/identity.hpp"

namespace headgate::config {

namespace {

// Returns the map with its keys in full; reports what is ambiguous, and what is given twice. `parse(text, value)` reads
// one entry.
template <class T, class Parse>
std::map<std::string, T> spell_out(checker& c, const std::map<std::string, T>& entries, const std::string& path,
                                   Parse parse)
{
    std::map<std::string, T> out;
    std::map<std::string, std::string> written; // full spelling -> as written
    for (const auto& [text, value] : entries) {
        const auto place = path + "." + text;
        if (!c.is_valid(place))
            continue;
        const identity meant = parse(text, value);
        if (!meant) {
            c.error(place, meant.complaint);
            continue;
        }
        const auto [first, is_new] = written.emplace(meant.spelling(), text);
        if (is_new)
            out.emplace(first->first, value);
        else
            c.error(place, "`" + text + "` is the same identity as `" + first->second + "`; remove one");
    }
    return out;
}

} // namespace

void check_overrides(checker& c, rule_config& rule, const std::string& path)
{
    std::vector<std::vector<identity_source>> sources;
    for (const auto& key : rule.key) {
        sources.push_back(sources_of(c.config, key));
        if (sources.back().empty())
            return; // reported as an error of the key
    }
    if (sources.empty())
        return;
    const auto parse = [&](const std::string& text, const limit_value& limit) {
        return parse_identity(text, sources, limit.text);
    };
    std::map<std::string, limiter::rule> rules;
    for (const auto& [text, built] : rule.override_rules) {
        if (const auto meant = parse_identity(text, sources))
            rules.emplace(meant.spelling(), built);
    }
    rule.overrides = spell_out(c, rule.overrides, path, parse);
    rule.override_rules = std::move(rules);
}

void check_plan_overrides(checker& c, plans_config& plans, const std::string& path)
{
    std::set<std::string> keys;
    for (const auto& [_, chain] : c.config.chains) {
        for (const auto& rule : chain.rules)
            keys.insert(rule.key.begin(), rule.key.end());
    }
    std::vector<identity_source> sources;
    for (const auto& key : keys) {
        const auto more = sources_of(c.config, key);
        sources.insert(sources.end(), more.begin(), more.end());
    }
    if (sources.empty())
        return;
    plans.overrides = spell_out(c, plans.overrides, path, [&](const std::string& text, const std::string& plan) {
        return parse_identity_of_any(text, sources, plan);
    });
}

} // namespace headgate::config
