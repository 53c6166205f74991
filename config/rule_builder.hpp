// From a rule's words to the limiter's numbers, refusing what cannot be counted. Pure.
#pragma once

#include "config/model.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate::config {

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

// `limit` is the rule's own, or that of a plan or an override.
built_rule build_rule(const rule_config& config, const limit_value& limit,
                      std::shared_ptr<const limiter::time_zone> zone);

// What one request takes at least, for comparing with a burst: 1 unless the cost is fixed or reserved.
std::uint64_t certain_cost(const cost_config& cost);

} // namespace headgate::config
