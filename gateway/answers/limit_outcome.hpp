// The outcome of the limit phase for one request: for the answer's fields, its body, the log and the metrics.
#pragma once

#include "gateway/compiled/chain.hpp"
#include "limiter/store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace headgate {

// One entry per decision. The memory is reused by one request after the other; only the first limit_outcome::count
// entries are valid.
struct judged_rules
{
    std::array<limiter::decision, limiter::max_decisions> decisions;
    std::array<const limiter::rule*, limiter::max_decisions> rules;
    std::array<const rule_text*, limiter::max_decisions> texts; // null: the rule is newer than the configuration
};

// A key that is blocked: by the configuration, before any rule of its chain is asked, or by an operator.
struct blocked_key
{
    const compiled_rules* rules = nullptr; // of the key; null: no key is blocked
    const limiter::rule* rule = nullptr;   // that blocks it; for an operator's block the first enforced rule
    std::string_view text;                 // of the key
};

// REQUIRES: rules.blocked_by.
inline blocked_key blocked_by_configuration(const compiled_rules& rules, std::string_view text)
{
    return {&rules, &rules.group->members()[*rules.blocked_by].limits.limits, text};
}

// `judged`: the rules of the key, which may be newer than `rules`.
inline blocked_key blocked_by_operator(const compiled_rules& rules, const limiter::rule_group& judged,
                                       std::string_view text)
{
    const auto& members = judged.members();
    const auto enforced =
        std::find_if(members.begin(), members.end(), [](const auto& m) { return !m.limits.limits.shadow; });
    return {&rules, &(enforced == members.end() ? members.front() : *enforced).limits.limits, text};
}

struct limit_outcome
{
    explicit limit_outcome(judged_rules& in) : decisions(in.decisions), rules(in.rules), texts(in.texts) {}

    bool refused = false;        // by a rule, or by an operator's block
    bool shadow_refused = false; // a shadow rule would have refused
    bool degraded = false; // decided by shared overflow counters, or by on_outage: the store was full or not reachable
    limiter::microseconds retry_after = limiter::never;
    limiter::microseconds delay{0}; // admitted: hold the request this long
    blocked_key blocked;
    std::size_t count = 0;                                        // the number of decisions
    std::size_t chains = 0;                                       // the number of chains that were evaluated
    std::vector<std::shared_ptr<const limiter::rule_group>> kept; // groups newer than the request's configuration
    std::span<limiter::decision> decisions;
    std::span<const limiter::rule*> rules;
    std::span<const rule_text*> texts;
};

} // namespace headgate
