// One rule for a store: a limit per hour from the first call on.
#pragma once

#include "limiter/rule_group.hpp"
#include "tests/support/rules.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace headgate::testing {

struct one_rule
{
    one_rule(std::string name, std::uint64_t an_hour)
    {
        rule r;
        r.name = "hour";
        r.kind = algorithm::fixed_window;
        r.count = an_hour;
        r.period = std::chrono::hours{1};
        r.align = window_align::first;
        lineage.name = std::move(name);
        rules = std::make_unique<rule_group>(lineage, 0, std::vector<rule>{std::move(r)});
    }
    group_lineage lineage;
    std::unique_ptr<rule_group> rules;
};

inline double ms(std::chrono::steady_clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

} // namespace headgate::testing
