#include "gateway/compiled/guard.hpp"

#include "config/guard.hpp"

#include <algorithm>

namespace headgate {

namespace {

// Finds the tables that name single identities of the key, whichever plan or limit they give them.
std::vector<const override_table*> find_configured(const std::string& key, const compiled_plans& plans,
                                                   const std::map<std::string, compiled_chain>& chains)
{
    std::vector<const override_table*> found;
    if (const auto of_plans = plans.by_key.find(key); of_plans != plans.by_key.end())
        found.push_back(&of_plans->second);
    for (const auto& [_, chain] : chains) {
        for (const auto& part : chain.parts) {
            if (part.key.size() == 1 && part.key.front().name == key)
                found.push_back(&part.overrides);
        }
    }
    return found;
}

// Finds the part of the client's address that is charged: the built-in key with the guard's prefixes.
compiled_key address_key(const config::gateway_config& config, const config::new_identities_config& from)
{
    auto key = compile_key(config, "client_ip");
    key.sources.front().ipv4_prefix = static_cast<unsigned>(from.ipv4_prefix);
    key.sources.front().ipv6_prefix = static_cast<unsigned>(from.ipv6_prefix);
    return key;
}

} // namespace

bool compiled_guard::may_be_invented(std::string_view text) const
{
    const auto source = std::ranges::find_if(key.sources, [&](const auto& s) { return text.starts_with(s.tag); });
    if (source == key.sources.end() || !config::can_be_invented(source->what)) // none: anonymous
        return false;
    return std::ranges::none_of(configured, [&](const auto* table) { return table->find(text) != nullptr; });
}

void compile_guard(guard_chain& out, const std::string& key, const config::gateway_config& config,
                   const compiled_plans& plans, const std::map<std::string, compiled_chain>& chains, guard_map& guards,
                   limiter::time_point now)
{
    const auto& from = *config.keys.at(key).new_identities;
    auto& memory = guards[key];
    if (memory)
        memory->use(from);
    else
        memory = std::make_shared<identity_guard>(from, now);
    out.guard = {compile_key(config, key), memory, find_configured(key, plans, chains)};

    const auto rule = config::as_rule(key, from);
    out.chain.name = "new_identities";
    out.chain.store = &memory->addresses();
    out.chain.guard = &out.guard;
    auto& part = out.chain.parts.emplace_back();
    part.key.push_back(address_key(config, from));
    part.group = memory->addresses().define("new_identities", {rule.rule}, now);
    auto& rules = part.variants.emplace_back();
    rules.group = part.group.get();
    rules.key = part.key;
    rules.terms.push_back({.cost = config::cost_config{.fixed = 1}}); // also where the route has a cost of its own
    rules.fixed_costs = {1};
    rules.texts.push_back(write_rule(rule, rule.limit, rule.rule));
    rules.texts.front().rule = &part.group->members().front().limits.limits;
    rules.texts.front().chain = out.chain.name;
}

} // namespace headgate
