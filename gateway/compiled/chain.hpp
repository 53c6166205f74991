// Chains compiled for requests: the rules that share a key form one group of the store, with one variant per
// combination of plan and override. Made once per (re)load, immutable.
#pragma once

#include "config/model.hpp"
#include "gateway/compiled/key.hpp"
#include "gateway/compiled/overrides.hpp"
#include "gateway/compiled/rule_terms.hpp"
#include "limiter/memory/memory_store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headgate {

// The stores outlive every reload: a limit that is still configured keeps its counters.
using store_map = std::map<std::string, std::unique_ptr<limiter::memory_store>>;

// The plans by number, in the order of their names; a single one without a name when none is configured.
struct compiled_plans
{
    std::vector<std::string> names{""};
    std::size_t default_plan = 0;
    compiled_key key; // where a request names its plan
    // The plan of a key's value precedes the one that the request names. By the name of the key; the texts are those of
    // one part of a key.
    std::map<std::string, override_table> by_key;

    std::size_t number_of(std::string_view name) const; // the default plan's number when the name is not known
};

compiled_plans compile_plans(const config::gateway_config& config);

// The texts about a rule that are the same for every request, made once.
struct rule_text
{
    const limiter::rule* rule = nullptr; // of the group
    config::cost_unit unit = config::cost_unit::requests;
    std::string chain;
    std::string policy; // its item of RateLimit-Policy, which begins with the quoted name
    std::size_t quoted_name_size = 0;
    std::string limit_words; // 60 per minute

    std::string_view quoted_name() const { return std::string_view(policy).substr(0, quoted_name_size); }
};

// Makes the texts for the rule with the limit and the numbers that apply.
rule_text write_rule(const config::rule_config& rule, const config::limit_value& limit, const limiter::rule& numbers);

// The rules of one key in one variant: what applies to the requests of one plan or override.
struct compiled_rules
{
    const limiter::rule_group* group = nullptr;
    std::span<const compiled_key> key; // of the chain_part
    std::vector<rule_terms> terms;     // one per rule of the group
    // The costs for each rule, when they are the same for every request and do not depend on the answer; else empty.
    std::vector<std::uint64_t> fixed_costs;
    std::vector<rule_text> texts;          // one per rule of the group
    std::optional<std::size_t> blocked_by; // the place of the rule that refuses every request of this variant

    // Returns the texts for the rule that made a decision, at this place of its group. During a reload it may be
    // another version of the rule, which is found by name, or a rule that is not known here: nullptr.
    const rule_text* find_text(const limiter::rule& judged, std::size_t place) const;
};

// The rules of a chain that share a key.
struct chain_part
{
    std::vector<compiled_key> key; // several: a composite key
    std::shared_ptr<const limiter::rule_group> group;
    std::vector<compiled_rules> variants; // the first: for requests without a plan or an override
    // The number of the variant, by the number of the plan: first for all keys, then for those that overrides name.
    std::vector<std::vector<std::size_t>> by_plan;
    override_table overrides;                          // a number in by_plan
    std::vector<const override_table*> plan_overrides; // one per part of the key

    bool varies() const { return variants.size() > 1; }
    // Returns the number of the plan that overrides give to the key with this text; null for the request's own plan.
    const std::size_t* plan_of(std::string_view text) const;
    const compiled_rules& rules_of(std::string_view text, std::size_t plan) const;
};

struct compiled_guard;

struct compiled_chain
{
    std::string name;
    const compiled_guard* guard = nullptr;  // not null: it takes only for new identities (compiled/guard.hpp)
    limiter::memory_store* store = nullptr; // null: its counters are in Redis
    std::size_t shared_number = 0;          // then: which of the compiled_config's shared stores
    bool closed_in_outage = false;          // then: requests are refused while Redis cannot be reached
    std::vector<chain_part> parts;

    bool is_shared() const { return store == nullptr; }
};

// Returns the stores in Redis, in the order of their names: each worker has its connections under the same number.
std::vector<std::string> shared_store_names(const config::gateway_config& config);

// The most variants that a configuration may make: a store has room for so many.
inline constexpr std::size_t most_variants = 20'000;
std::size_t count_variants(const config::gateway_config& config);

// Compiles the chain and defines its rules in its store; makes the store if it does not exist yet.
compiled_chain compile_chain(const std::string& name, const config::gateway_config& config, const compiled_plans& plans,
                             store_map& stores, limiter::time_point now);

} // namespace headgate
