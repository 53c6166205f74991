#include "config/summary.hpp"

#include "config/guard.hpp"
#include "config/identity.hpp"

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

std::string match_text(const gateway_config& config, std::size_t number)
{
    const auto& match = config.routes[number].match;
    const auto headers = "routes[" + std::to_string(number) + "].match.headers.";
    std::string out;
    if (!match.methods.empty())
        out += joined(match.methods, "|") + " ";
    out += joined(match.hosts, "|");
    out += match.paths.empty() ? (match.hosts.empty() ? "everything" : "") : joined(match.paths, "|");
    for (const auto& [name, value] : match.headers) {
        const bool is_hidden = config.places && config.places->is_from_environment(headers + name);
        out += " with " + name + (value == "*" ? "" : ": " + (is_hidden ? "***" : value));
    }
    return out;
}

// Returns the requests of a route that are not limited; empty if all are.
std::string exempt_text(const exempt_config& exempt)
{
    std::vector<std::string> networks;
    for (const auto& each : exempt.networks)
        networks.push_back(each.text);
    std::string out;
    const auto add = [&](const char* what, const std::vector<std::string>& list) {
        if (!list.empty())
            out += (out.empty() ? "" : "; ") + std::string(what) + " " + joined(list, ", ");
    };
    add("methods", exempt.methods);
    add("paths", exempt.paths);
    add("networks", networks);
    return out;
}

// Rounded up to three digits or more: 132 MiB.
std::string rounded(byte_size size)
{
    static const std::pair<const char*, std::uint64_t> units[] = {
        {" GiB", 1ULL << 30U}, {" MiB", 1ULL << 20U}, {" KiB", 1ULL << 10U}};
    for (const auto& [name, factor] : units)
        if (size.bytes >= 10 * factor)
            return std::to_string((size.bytes + factor - 1) / factor) + name;
    return std::to_string(size.bytes) + " bytes";
}

std::string store_text(const store_config& store, const byte_size* memory)
{
    if (store.type == store_type::memory)
        return "in memory, at most " + std::to_string(store.max_keys) + " keys" +
               (memory ? " in " + rounded(*memory) : "") + (store.snapshot ? ", kept in " + store.snapshot->path : "");
    std::string where = store.url.socket;
    for (const auto& server : store.url.servers)
        where += (where.empty() ? "" : ", ") + server.text();
    return "Redis at " + where + (store.url.tls ? " over TLS" : "") + ", timeout " + to_text(store.timeout) +
           ", in an outage: " + std::string(name_of(store.outage));
}

std::string trusted_text(const gateway_config& config)
{
    if (config.trusted_proxies.empty())
        return "  none: a client's address is that of its connection\n";
    std::string out;
    for (const auto& each : config.trusted_proxies)
        out += (out.empty() ? "  " : ", ") + each.text;
    static const char* fields[] = {"not read from a field", "X-Forwarded-For", "Forwarded"};
    return out + "; the client's address: " + fields[static_cast<std::size_t>(config.forwarding.client_address)] + "\n";
}

std::string plans_text(const gateway_config& config)
{
    const auto& plans = *config.plans;
    std::string out = "plans\n  " + joined(plans.names, ", ") + "; the default is " + plans.default_plan + "\n";
    std::string from;
    for (const auto& source : sources_of(config, plans.sources, "plan"))
        from += (from.empty() ? "" : ", then ") + source.label().substr(sizeof "plan");
    out += from.empty() ? "  read from no source\n" : "  read from " + from + "\n";
    if (plans.overrides.empty())
        return out;
    out += "plans of single identities, wherever their source identifies the request\n";
    for (const auto& [identity, plan] : plans.overrides)
        out += "  " + identity + ": " + plan + "\n";
    return out;
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
    if (rule.kind == limiter::algorithm::sliding_window)
        out += ", estimated from this window and the one before";
    if (rule.kind == limiter::algorithm::sliding_log)
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

std::string summarise(const gateway_config& config, const std::map<std::string, byte_size>& memory)
{
    std::string out = "listeners\n";
    for (const auto& listener : config.listeners)
        out += "  " + listener.address.text() + (listener.tls ? " (TLS)" : "") + "\n";
    out += "trusted proxies\n" + trusted_text(config);
    if (config.admin)
        out += "admin\n  " + config.admin->address.text() + (config.admin->token.empty() ? "" : " (token required)") +
               "\n";
    if (!config.stores.empty())
        out += "stores\n";
    for (const auto& [name, store] : config.stores) {
        const auto bound = memory.find(name);
        out += "  " + name + ": " + store_text(store, bound == memory.end() ? nullptr : &bound->second) + "\n";
    }
    out += "routes, first match wins\n";
    for (std::size_t i = 0; i < config.routes.size(); ++i) {
        const auto& route = config.routes[i];
        out += "  " + std::to_string(i + 1) + ". " + route.name + ": " + match_text(config, i) + " -> " +
               (route.chains.empty() ? "no limits" : joined(route.chains, ", ")) + " -> " + route.upstream + "\n";
        if (const auto exempt = exempt_text(route.exempt); !exempt.empty())
            out += "     not limited: " + exempt + "\n";
    }
    if (!config.chains.empty())
        out += "chains, each decided at once\n";
    for (const auto& [name, chain] : config.chains) {
        out += "  " + name + " (store " + chain.store + ")\n";
        for (const auto& rule : chain.rules) {
            out += "    " + rule.name + ": " + in_words(rule) + "\n";
            for (const auto& [plan, limit] : rule.plans)
                out += "      plan " + plan + ": " + limit.text + "\n";
            for (const auto& [identity, limit] : rule.overrides)
                out += "      " + identity + ": " + limit.text + "\n";
        }
    }
    if (config.plans)
        out += plans_text(config);
    std::string guards;
    for (const auto& [name, key] : config.keys) {
        if (key.new_identities)
            guards += "  " + name + ": " + in_words(name, *key.new_identities) + "\n";
    }
    if (!guards.empty())
        out += "new identities\n" + guards;
    out += "upstreams\n";
    for (const auto& [name, upstream] : config.upstreams)
        out += "  " + name + ": " + upstream_text(upstream) + "\n";
    return out;
}

} // namespace headgate::config
