// Checks of guards against invented identities, and of limits that need one.
#include "config/check.hpp"
#include "config/guard.hpp"

namespace headgate::config {

void check_guards(checker& c)
{
    for (auto& [name, key] : c.config.keys) {
        const auto path = "keys." + name + ".new_identities";
        if (!key.new_identities || !c.is_valid(path))
            continue;
        const auto limit = c.at.given(path + ".limit") ? path + ".limit" : path;
        auto built = build_rule(as_rule(name, *key.new_identities), key.new_identities->limit, nullptr);
        for (const auto& complaint : built.complaints)
            c.error(limit, complaint.message);
        key.new_identities->rule = std::move(built.rule);
    }
}

void warn_of_invented_identities(checker& c)
{
    std::set<std::string> limited;
    for (const auto& [_, chain] : c.config.chains) {
        for (const auto& rule : chain.rules) {
            if (rule.mode == rule_mode::enforce)
                limited.insert(rule.key.begin(), rule.key.end());
        }
    }
    for (const auto& [name, key] : c.config.keys) {
        const auto path = "keys." + name;
        const identity_source* shown = nullptr; // the first that any client can set
        bool can_invent = false;
        const auto sources = sources_of(c.config, name);
        for (const auto& source : sources) {
            can_invent = can_invent || can_be_invented(source.kind);
            if (!shown && source.kind <= source_kind::query)
                shown = &source;
        }
        if (key.new_identities && !can_invent)
            c.warn(path + ".new_identities", "no source of this key can be made up by a client; remove this guard");
        if (key.new_identities || !shown || !limited.contains(name))
            continue;
        c.warn(path, "a client that makes up another " + std::string(name_of(shown->kind)) + " `" + shown->name +
                         "` for each request is never limited; write `" + name +
                         ": { sources: [ … ], new_identities: 100/hour }`, or use a source that is verified "
                         "(jwt_claim, api_key)");
    }
}

} // namespace headgate::config
