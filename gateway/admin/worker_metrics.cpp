#include "gateway/admin/worker_metrics.hpp"

#include "gateway/request/request.hpp"

#include <algorithm>

namespace headgate {

void worker_metrics::adopt(const compiled_config& next)
{
    std::lock_guard guard(lock_);
    std::map<std::string_view, const compiled_route*> wanted;
    for (const auto& route : next.routes)
        wanted.emplace(route.name, &route);
    std::erase_if(routes_, [&](const auto& known) { return !wanted.contains(known.first); });
    for (const auto& [name, route] : wanted) {
        auto& counters = routes_[std::string(name)];
        std::vector<const limiter::rule*> rules;
        for (const auto* chain : route->chains) {
            for (const auto& part : chain->parts) {
                for (const auto& member : part.group->members())
                    rules.push_back(&member.limits.limits);
            }
        }
        for (auto* table : {&counters.refused, &counters.shadow_refused}) {
            std::erase_if(*table, [&](const auto& known) {
                return std::none_of(rules.begin(), rules.end(), [&](auto* r) { return r->name == known.first; });
            });
            for (const auto* rule : rules)
                (*table)[rule->name];
        }
        counters.by_known_rule.clear();
        for (const auto* rule : rules)
            counters.by_known_rule.emplace_back(rule, counters.of_rule(*rule));
    }
    std::erase_if(upstreams_, [&](const auto& known) { return !next.source.upstreams.contains(known.first); });
    for (const auto& [name, _] : next.source.upstreams)
        upstreams_[name];
    for (const auto& store : next.shared_stores)
        stores_[store.name]; // kept when the store is removed: it may be added again, and its counters must not go back
    by_number_.clear();
    for (const auto& route : next.routes)
        by_number_.push_back(&routes_.find(route.name)->second);
    adopted_ = &next;
}

// Returns nullptr for a rule that is no longer configured, or not yet.
counter* route_counters::of_rule(const limiter::rule& refusing)
{
    for (const auto& [rule, refusals] : by_known_rule) {
        if (rule == &refusing)
            return refusals;
    }
    auto& table = refusing.shadow ? shadow_refused : refused;
    const auto found = table.find(refusing.name);
    return found == table.end() ? nullptr : &found->second;
}

route_counters& worker_metrics::of_route(const request& r)
{
    const auto* route = r.received.route;
    if (!route)
        return unrouted_;
    if (&r.config() == adopted_)
        return *by_number_[static_cast<std::size_t>(route - r.config().routes.data())];
    const auto known = routes_.find(route->name); // the request began before a reload
    return known == routes_.end() ? unrouted_ : known->second;
}

void worker_metrics::count(const request& r, std::chrono::microseconds took)
{
    auto& to = of_route(r);
    to.answers[std::min<std::size_t>(r.record.status / 100, 5)].add();
    std::size_t bucket = 0;
    while (bucket < duration_bounds_us.size() && took.count() > duration_bounds_us[bucket])
        ++bucket;
    to.durations[bucket].add();
    to.duration_sum_us.add(static_cast<std::uint64_t>(took.count()));
    const auto& limit = r.limits.outcome;
    if (limit.delay.count() > 0)
        to.delayed.add();
    if (!limit.refused && !limit.shadow_refused)
        return;
    if (limit.blocked.rule) {
        if (auto* const refusals = to.of_rule(*limit.blocked.rule))
            refusals->add();
    }
    for (std::size_t i = 0; i < limit.count; ++i) {
        if (limit.decisions[i].admitted || limit.rules[i] == limit.blocked.rule)
            continue;
        if (auto* const refusals = to.of_rule(*limit.rules[i]))
            refusals->add();
    }
}

shared_store_counters& worker_metrics::of_store(std::string_view name)
{
    const auto known = stores_.find(name);
    return known == stores_.end() ? forgotten_store_ : known->second;
}

upstream_counters& worker_metrics::of_upstream(std::string_view name)
{
    const auto known = upstreams_.find(name);
    return known == upstreams_.end() ? forgotten_ : known->second;
}

} // namespace headgate
