#include "config/summary.hpp"

#include <algorithm>

namespace headgate::config {

namespace {

std::string joined(const std::vector<std::string>& list, const char* between)
{
    std::string out;
    for (const auto& item : list)
        out += (out.empty() ? "" : between) + item;
    return out;
}

// minute, 90s, calendar day (UTC)
std::string period_text(const rule_config& config)
{
    const auto& rule = config.rule;
    using limiter::calendar_unit;
    const char* unit = rule.calendar == calendar_unit::day     ? "day"
                       : rule.calendar == calendar_unit::week  ? "week"
                       : rule.calendar == calendar_unit::month ? "month"
                                                               : nullptr;
    if (unit)
        return std::string("calendar ") + unit + " (" + config.time_zone + ")";
    static const std::pair<duration, const char*> named[] = {{1s, "second"}, {1min, "minute"},  {1h, "hour"},
                                                             {24h, "day"},   {24h * 7, "week"}, {24h * 30, "30 days"}};
    for (const auto& [length, name] : named)
        if (length == rule.period)
            return name;
    return to_text(rule.period);
}

std::string key_text(const std::vector<std::string>& key) { return "for each " + joined(key, " and "); }

std::string cost_text(const cost_config& cost)
{
    if (!cost.settle.empty())
        return ", settled by " + cost.settle + " after reserving " + std::to_string(cost.reserve);
    if (!cost.header.empty())
        return ", each request costs the value of " + cost.header + ", at most " + std::to_string(cost.max);
    if (!cost.methods.empty())
        return ", with a cost by method";
    if (cost.fixed && *cost.fixed != 1)
        return ", each request costs " + std::to_string(*cost.fixed);
    return {};
}

std::string match_text(const route_match& match)
{
    std::string out;
    if (!match.methods.empty())
        out += joined(match.methods, "|") + " ";
    out += joined(match.hosts, "|");
    out += match.paths.empty() ? (match.hosts.empty() ? "everything" : "") : joined(match.paths, "|");
    for (const auto& [name, value] : match.headers)
        out += " with " + name + (value == "*" ? "" : ": " + value);
    return out;
}

std::string store_text(const store_config& store)
{
    if (store.type == store_type::memory)
        return "in memory, at most " + std::to_string(store.max_keys) + " keys" +
               (store.snapshot ? ", kept in " + store.snapshot->path : "");
    std::string where = store.url.socket;
    for (const auto& server : store.url.servers)
        where += (where.empty() ? "" : ", ") + server.text();
    return "Redis at " + where + (store.url.tls ? " over TLS" : "") + ", timeout " + to_text(store.timeout) +
           ", in an outage: " + std::string(name_of(store.outage));
}

std::string upstream_text(const upstream_config& upstream)
{
    if (upstream.echo)
        return "the built-in echo";
    std::string out;
    for (const auto& server : upstream.servers)
        out += (out.empty() ? "" : ", ") + server.text();
    return out;
}

} // namespace

std::string limit_in_words(const rule_config& config)
{
    auto count = std::to_string(config.rule.count);
    if (config.unit != cost_unit::requests)
        count += " " + std::string(name_of(config.unit));
    if (config.rule.kind == limiter::algorithm::concurrency)
        return count + " at the same time";
    return count + " per " + period_text(config);
}

std::string in_words(const rule_config& config)
{
    const auto& rule = config.rule;
    auto out = limit_in_words(config) + " " + key_text(config.key);
    if (rule.is_bucket())
        out += ", at most " + std::to_string(rule.capacity) + " at once";
    if (rule.kind == limiter::algorithm::token_bucket && rule.initial != rule.capacity)
        out += ", starting with " + std::to_string(rule.initial);
    if (rule.delay_after)
        out += *rule.delay_after == 0 ? ", delayed beyond the first"
                                      : ", delayed beyond the first " + std::to_string(*rule.delay_after + 1);
    if (rule.kind == limiter::algorithm::sliding_window || rule.kind == limiter::algorithm::sliding_log)
        out += ", in any period of that length";
    if (rule.kind == limiter::algorithm::fixed_window && rule.align == limiter::window_align::first)
        out += ", counted from the first request";
    out += cost_text(config.cost);
    if (config.outcome)
        out += ", charged by outcome";
    if (!config.plans.empty())
        out += ", " + std::to_string(config.plans.size()) +
               (config.plans.size() == 1 ? " plan with its own limit" : " plans with their own limits");
    if (!config.overrides.empty())
        out += ", " + std::to_string(config.overrides.size()) +
               (config.overrides.size() == 1 ? " override" : " overrides");
    if (rule.count_refused)
        out += ", refused requests are charged too";
    if (rule.shadow)
        out += " (shadow: never refuses)";
    return out;
}

std::string summarise(const gateway_config& config)
{
    std::string out = "listeners\n";
    for (const auto& listener : config.listeners)
        out += "  " + listener.address.text() + (listener.tls ? " (TLS)" : "") + "\n";
    if (config.admin)
        out += "admin\n  " + config.admin->address.text() + (config.admin->token.empty() ? "" : " (token required)") +
               "\n";
    if (!config.stores.empty())
        out += "stores\n";
    for (const auto& [name, store] : config.stores)
        out += "  " + name + ": " + store_text(store) + "\n";
    out += "routes, first match wins\n";
    for (std::size_t i = 0; i < config.routes.size(); ++i) {
        const auto& route = config.routes[i];
        out += "  " + std::to_string(i + 1) + ". " + route.name + ": " + match_text(route.match) + " -> " +
               (route.chains.empty() ? "no limits" : joined(route.chains, ", ")) + " -> " + route.upstream + "\n";
    }
    if (!config.chains.empty())
        out += "chains, each decided at once\n";
    for (const auto& [name, chain] : config.chains) {
        out += "  " + name + " (store " + chain.store + ")\n";
        for (const auto& rule : chain.rules) {
            out += "    " + rule.name + ": " + in_words(rule) + "\n";
            for (const auto& [identity, limit] : rule.overrides)
                out += "      " + identity + ": " + limit.text + "\n";
        }
    }
    if (config.plans && !config.plans->overrides.empty()) {
        out += "plans of single identities, wherever their source identifies the request\n";
        for (const auto& [identity, plan] : config.plans->overrides)
            out += "  " + identity + ": " + plan + "\n";
    }
    out += "upstreams\n";
    for (const auto& [name, upstream] : config.upstreams)
        out += "  " + name + ": " + upstream_text(upstream) + "\n";
    return out;
}

} // namespace headgate::config
