// Chains made ready for requests: rules that share a key in one group of the store, in as many variants as plans and
// overrides make of them. Made once a (re)load, immutable.
#pragma once

#include "config/model.hpp"
#include "gateway/compiled/key.hpp"
#include "gateway/compiled/rule_terms.hpp"
#include "limiter/memory/memory_store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headgate {

// The stores outlive every reload: a limit that stays keeps its counters.
using store_map = std::map<std::string, std::unique_ptr<limiter::memory_store>>;

// The plans by number, in the order of their names; one that is called nothing when there are none.
struct compiled_plans
{
    std::vector<std::string> names{""};
    std::size_t default_plan = 0;
    compiled_key key;                                             // where a request says its plan
    std::map<std::string, std::size_t, std::less<>> by_key_value; // before what the request says

    std::size_t number_of(std::string_view name) const; // that of the default plan when it is not known
};

compiled_plans compile_plans(const config::gateway_config& config);

// What is told of a rule and is the same for every request, written out once.
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

// What rules of one key apply to some of its requests.
struct compiled_rules
{
    const limiter::rule_group* group = nullptr;
    std::vector<rule_terms> terms; // one a rule of the group
    // What every request costs each rule, whatever it is and however it ends; none when that has to be found out.
    std::vector<std::uint64_t> fixed_costs;
    bool blocked = false;        // nobody on this plan passes
    std::vector<rule_text> texts; // one a rule of the group

    // What was written out for the rule at this place of the group that judged. During a reload that may be another
    // version of it, found by name, or one that is not known here at all: null.
    const rule_text* find_text(const limiter::rule& judged, std::size_t place) const;
};

// The rules of a chain that share a key.
struct chain_part
{
    std::vector<compiled_key> key; // several: a composite
    std::shared_ptr<const limiter::rule_group> group;
    std::vector<compiled_rules> variants; // the first: for everyone else
    // Which variant it is, by the number of the plan: for everyone, and for single values of the key.
    std::vector<std::size_t> by_plan;
    std::map<std::string, std::vector<std::size_t>, std::less<>> by_value;

    bool varies() const { return variants.size() > 1; }
};

struct compiled_chain
{
    std::string name;
    limiter::memory_store* store = nullptr; // null: its counters are in Redis
    std::size_t shared_number = 0;          // then: which of the compiled_config's shared stores
    bool closed_in_outage = false;          // then: nobody passes while they cannot be asked
    std::vector<chain_part> parts;

    bool is_shared() const { return store == nullptr; }
};

// The stores in Redis, in the order of their names: each worker has its connections under the same number.
std::vector<std::string> shared_store_names(const config::gateway_config& config);

// How many variants of rules a configuration makes: a store has room for so many.
inline constexpr std::size_t most_variants = 20'000;
std::size_t count_variants(const config::gateway_config& config);

// Defines the chain's rules in its store, which is made when it is missing.
compiled_chain compile_chain(const std::string& name, const config::gateway_config& config, const compiled_plans& plans,
                             store_map& stores, limiter::time_point now);

} // namespace headgate
