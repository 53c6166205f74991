#include "gateway/compiled/chain.hpp"

#include "config/summary.hpp"
#include "gateway/answers/limit_fields.hpp"
#include "limiter/redis/packed_group.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace headgate {

namespace {

using rule_list = std::vector<const config::rule_config*>;

// Returns the cost for each rule; empty when a rule's cost depends on the request, or is settled when it has ended.
std::vector<std::uint64_t> fixed_costs(const std::vector<rule_terms>& terms)
{
    std::vector<std::uint64_t> costs;
    for (const auto& rule : terms) {
        const bool plain = !rule.is_settled_later(nullptr) && (!rule.cost || rule.cost->fixed);
        if (!plain)
            return {};
        costs.push_back(rule.cost ? *rule.cost->fixed : 1);
    }
    return costs;
}

} // namespace

rule_text write_rule(const config::rule_config& rule, const config::limit_value& limit, const limiter::rule& numbers)
{
    auto shown = rule; // with the limit of the plan
    shown.limit = limit;
    shown.rule = numbers;
    rule_text written{.unit = rule.unit, .limit_words = config::limit_in_words(shown)};
    http::byte_buffer text;
    append_sf_string(text, numbers.name);
    written.quoted_name_size = text.size();
    text.clear();
    append_policy(text, numbers, rule.unit);
    written.policy = text.view();
    return written;
}

namespace {

// The rules with the limits for one plan and, if it is not null, one identity.
struct chosen_rules
{
    std::vector<limiter::rule> rules;
    std::vector<rule_terms> terms;
    std::vector<rule_text> texts;
    std::optional<std::size_t> blocked_by; // the first rule that refuses every request
    bool differ = false;                   // from the rules without a plan or an override
};

chosen_rules choose(const rule_list& group, const std::string& plan, const override_entry* identity)
{
    using form = config::limit_value::form;
    chosen_rules chosen;
    for (const auto* rule : group) {
        std::string name;
        const auto* override_limit = identity ? find_override(*rule, *identity, name) : nullptr;
        const auto plan_limit = rule->plans.find(plan);
        const limiter::rule* numbers = &rule->rule;
        const auto* limit = &rule->limit;
        if (override_limit) {
            limit = override_limit;
            if (const auto built = rule->override_rules.find(name); built != rule->override_rules.end())
                numbers = &built->second;
        } else if (plan_limit != rule->plans.end()) {
            limit = &plan_limit->second;
            if (const auto built = rule->plan_rules.find(plan); built != rule->plan_rules.end())
                numbers = &built->second;
        }
        const auto what = limit->what;
        chosen.differ = chosen.differ || numbers != &rule->rule || what == form::unlimited || what == form::blocked;
        if (what == form::blocked && !rule->rule.shadow && !chosen.blocked_by)
            chosen.blocked_by = chosen.rules.size();
        chosen.rules.push_back(*numbers);
        chosen.texts.push_back(write_rule(*rule, *limit, *numbers));
        if (what == form::unlimited || what == form::blocked) {
            // It stays in the group, so that a key that changes its plan keeps its counters.
            chosen.rules.back().unlimited = true;
            chosen.terms.push_back({.cost = config::cost_config{.fixed = 0}, .blocks = what == form::blocked});
        } else {
            chosen.terms.push_back(make_terms(*rule));
        }
    }
    return chosen;
}

// Collects the variants of one part, and which of them each plan and each overridden identity uses.
class variant_maker
{
public:
    variant_maker(const rule_list& group, const compiled_plans& plans, std::vector<override_entry> identities)
        : group_(group), plans_(plans), identities_(std::move(identities))
    {}

    // Makes all variants. `define(rules, variants)` makes the group in the store that it belongs to.
    template <class Define>
    void fill(chain_part& part, const std::string& chain, Define define)
    {
        add({}, choose(group_, {}, nullptr)); // for all other requests
        part.by_plan.push_back(add_plans(nullptr));
        for (const auto& identity : identities_) {
            part.overrides.add(identity, part.by_plan.size());
            part.by_plan.push_back(add_plans(&identity));
        }
        auto rules = std::move(found_.front().second.rules);
        limiter::rule_variants variants;
        for (auto& [variant, chosen] : found_) {
            if (!variant.empty())
                variants.emplace(variant, std::move(chosen.rules));
        }
        part.group = define(std::move(rules), std::move(variants));
        for (auto& [variant, chosen] : found_) {
            auto& ready = part.variants.emplace_back();
            ready.blocked_by = chosen.blocked_by;
            ready.key = part.key;
            ready.group = &part.group->variant(variant);
            ready.terms = std::move(chosen.terms);
            ready.fixed_costs = fixed_costs(ready.terms);
            ready.texts = std::move(chosen.texts);
            for (std::size_t i = 0; i < ready.texts.size(); ++i) {
                ready.texts[i].rule = &ready.group->members()[i].limits.limits;
                ready.texts[i].chain = chain;
            }
        }
    }

private:
    std::vector<std::size_t> add_plans(const override_entry* identity)
    {
        std::vector<std::size_t> numbers;
        for (const auto& plan : plans_.names) {
            auto chosen = choose(group_, plan, identity);
            // The name does not depend on other plans, so that a reload finds the same plan's counters again.
            const auto name = (identity ? "value " + identity->name() + " " : std::string()) + "plan " + plan;
            numbers.push_back(chosen.differ ? add(name, std::move(chosen)) : 0);
        }
        return numbers;
    }
    std::size_t add(std::string name, chosen_rules chosen)
    {
        found_.emplace_back(std::move(name), std::move(chosen));
        return found_.size() - 1;
    }

    const rule_list& group_;
    const compiled_plans& plans_;
    std::vector<override_entry> identities_;
    std::vector<std::pair<std::string, chosen_rules>> found_;
};

std::string joined(const std::vector<std::string>& names)
{
    std::string text;
    for (const auto& name : names)
        text += (text.empty() ? "" : ",") + name;
    return text;
}

// Groups rules by their key, in the order of the file: rules that share a key share one entry of the store.
std::vector<rule_list> group_by_key(const std::vector<config::rule_config>& rules)
{
    std::vector<rule_list> groups;
    for (const auto& rule : rules) {
        auto same = groups.begin();
        while (same != groups.end() && same->front()->key != rule.key)
            ++same;
        if (same == groups.end())
            same = groups.emplace(groups.end());
        same->push_back(&rule);
    }
    return groups;
}

std::vector<override_entry> identities_of(const rule_list& group, const config::gateway_config& config)
{
    std::vector<compiled_key> key;
    for (const auto& name : group.front()->key)
        key.push_back(compile_key(config, name));
    return override_entries(group, config, key, most_variants);
}

} // namespace

const rule_text* compiled_rules::find_text(const limiter::rule& judged, std::size_t place) const
{
    if (place < texts.size() && texts[place].rule == &judged) [[likely]]
        return &texts[place];
    for (const auto& known : texts) {
        if (known.rule->name == judged.name)
            return &known;
    }
    return nullptr;
}

std::size_t compiled_plans::number_of(std::string_view name) const
{
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? default_plan : static_cast<std::size_t>(found - names.begin());
}

namespace {

// A plan's override applies wherever its source identified the request: in each key that reads the same place.
void add_plan_overrides(const config::gateway_config& config, compiled_plans& plans)
{
    std::vector<config::identity_source> all;
    for (const auto& [key, _] : plans.by_key) {
        const auto more = config::sources_of(config, key);
        all.insert(all.end(), more.begin(), more.end());
    }
    for (const auto& [text, plan] : config.plans->overrides) {
        const auto meant = config::parse_identity_of_any(text, all).parts.front();
        for (auto& [key, table] : plans.by_key) {
            const auto sources = config::sources_of(config, key);
            const auto compiled = compile_key(config, key);
            for (std::size_t i = 0; i < sources.size(); ++i) {
                if (sources[i].reads_same(*meant->source))
                    table.add({1, {text}, {text_of(compiled, i, meant->value)}}, plans.number_of(plan));
            }
        }
    }
}

} // namespace

compiled_plans compile_plans(const config::gateway_config& config)
{
    compiled_plans plans;
    if (!config.plans)
        return plans;
    plans.names = config.plans->names;
    plans.default_plan = plans.number_of(config.plans->default_plan);
    plans.key = compile_key(config, config.plans->sources);
    for (auto& source : plans.key.sources)
        source.is_plan = true;
    for (const auto& [_, chain] : config.chains) {
        for (const auto& rule : chain.rules) {
            for (const auto& key : rule.key)
                plans.by_key.try_emplace(key);
        }
    }
    add_plan_overrides(config, plans);
    return plans;
}

const std::size_t* chain_part::plan_of(std::string_view text) const
{
    for (std::size_t i = 0; i < plan_overrides.size(); ++i) {
        if (const auto* plan = plan_overrides[i]->find(part_of_key(text, i)))
            return plan;
    }
    return nullptr;
}

const compiled_rules& chain_part::rules_of(std::string_view text, std::size_t plan) const
{
    const auto* overridden = overrides.find(text);
    return variants[by_plan[overridden ? *overridden : 0][plan]];
}

std::size_t count_variants(const config::gateway_config& config)
{
    const auto plans = config.plans ? config.plans->names.size() : 1;
    std::size_t sum = 0;
    for (const auto& [_, chain] : config.chains) {
        for (const auto& group : group_by_key(chain.rules)) {
            sum += (identities_of(group, config).size() + 1) * plans;
        }
    }
    return sum;
}

std::vector<std::string> shared_store_names(const config::gateway_config& config)
{
    std::vector<std::string> names;
    for (const auto& [name, store] : config.stores) {
        if (store.type == config::store_type::redis)
            names.push_back(name);
    }
    return names;
}

namespace {

// Returns whether one of the rules refuses during an outage. A chain is decided as a whole, so one such rule is enough.
bool is_closed_in_outage(const config::chain_config& chain, const config::store_config& store)
{
    return std::any_of(chain.rules.begin(), chain.rules.end(), [&](const config::rule_config& rule) {
        return rule.outage.value_or(store.outage) == config::on_outage::closed;
    });
}

void check_for_redis(const std::string& chain, const std::vector<limiter::rule>& rules)
{
    for (const auto& rule : rules) {
        if (const auto why = limiter::redis::why_not_in_redis(rule))
            throw std::runtime_error("chains." + chain + ": rule " + rule.name + ": " + *why);
    }
}

} // namespace

compiled_chain compile_chain(const std::string& name, const config::gateway_config& config, const compiled_plans& plans,
                             store_map& stores, limiter::time_point now)
{
    const auto& from = config.chains.at(name);
    const auto& kept_in = config.stores.at(from.store);
    compiled_chain chain{.name = name};
    if (kept_in.type == config::store_type::redis) {
        const auto shared = shared_store_names(config);
        chain.shared_number =
            static_cast<std::size_t>(std::find(shared.begin(), shared.end(), from.store) - shared.begin());
        chain.closed_in_outage = is_closed_in_outage(from, kept_in);
    } else {
        auto& store = stores[from.store];
        if (!store)
            store = std::make_unique<limiter::memory_store>(kept_in.max_keys);
        chain.store = store.get();
    }
    for (const auto& group : group_by_key(from.rules)) {
        auto& part = chain.parts.emplace_back();
        for (const auto& key : group.front()->key)
            part.key.push_back(compile_key(config, key));
        for (const auto& key : group.front()->key) {
            if (const auto found = plans.by_key.find(key); found != plans.by_key.end())
                part.plan_overrides.push_back(&found->second);
        }
        const auto group_name = name + "/" + joined(group.front()->key);
        variant_maker(group, plans, identities_of(group, config)).fill(part, name, [&](auto rules, auto variants) {
            if (chain.store)
                return chain.store->define(group_name, std::move(rules), now, std::move(variants));
            check_for_redis(name, rules);
            for (const auto& [_, of_variant] : variants)
                check_for_redis(name, of_variant);
            return limiter::define_detached(group_name, std::move(rules), variants);
        });
    }
    return chain;
}

} // namespace headgate
