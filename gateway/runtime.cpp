#include "gateway/runtime.hpp"

#include <stdexcept>

namespace headgate {

// What the configuration lets pass has room: a chain's parts, a group's rules, a request's decisions.
static_assert(config::max_keys_a_chain <= limiter::max_parts);
static_assert(config::max_rules_a_key <= limiter::max_rules_a_group);
static_assert(config::max_rules_a_route <= limiter::max_decisions);

namespace {

key_reader resolve_key(const config::gateway_config& config, const std::string& name)
{
    using enum key_reader::kind;
    const auto configured_key = config.keys.find(name);
    if (configured_key != config.keys.end())
        return {configured, &configured_key->second};
    if (name == "route")
        return {route};
    if (name == "host")
        return {host};
    if (name == "method")
        return {method};
    return {client_ip};
}

std::string joined(const std::vector<std::string>& names)
{
    std::string text;
    for (const auto& name : names)
        text += (text.empty() ? "" : ",") + name;
    return text;
}

ready_chain make_chain(const std::string& name, const config::gateway_config& config, store_map& stores,
                       limiter::time_point now)
{
    const auto& from = config.chains.at(name);
    ready_chain chain{.name = name};
    const auto& store_config = config.stores.at(from.store);
    auto& store = stores[from.store];
    if (!store)
        store = std::make_unique<limiter::memory_store>(store_config.max_keys);
    chain.store = store.get();

    // Rules that share a key are judged on one entry of the store: grouped here, in the order of the file.
    std::vector<std::vector<const config::rule_config*>> groups;
    for (const auto& rule : from.rules) {
        auto same = groups.begin();
        while (same != groups.end() && same->front()->key != rule.key)
            ++same;
        if (same == groups.end())
            same = groups.emplace(groups.end());
        same->push_back(&rule);
    }
    for (const auto& group : groups) {
        auto& part = chain.parts.emplace_back();
        for (const auto& key : group.front()->key)
            part.key.push_back(resolve_key(config, key));
        std::vector<limiter::rule> rules;
        for (const auto* rule : group) {
            rules.push_back(rule->rule);
            part.costs.push_back(rule->cost.fixed.value_or(1));
            const bool in_flight = rule->rule.kind == limiter::algorithm::concurrency;
            part.held.push_back(in_flight ? part.costs.back() : 0);
            chain.holds = chain.holds || in_flight;
        }
        part.group = chain.store->define(name + "/" + joined(group.front()->key), std::move(rules), now);
    }
    return chain;
}

http::header_edits make_edits(const config::header_edit& from)
{
    http::header_edits edits;
    for (const auto& name : from.remove)
        edits.remove(name);
    for (const auto& [name, value] : from.set)
        edits.set(name, value);
    for (const auto& [name, value] : from.add)
        edits.add(name, value);
    return edits;
}

http::route_pattern make_pattern(const config::route_match& match, const std::string& path)
{
    // `*.png` is short for every path that ends so.
    http::route_pattern pattern{
        .hosts = match.hosts, .path = path.starts_with("*.") ? "/" + path : path, .methods = match.methods};
    for (const auto& [name, value] : match.headers)
        pattern.headers.push_back({name, value == "*" ? std::nullopt : std::optional(value)});
    return pattern;
}

} // namespace

std::shared_ptr<const runtime> make_runtime(config::gateway_config config, store_map& stores, limiter::time_point now)
{
    auto ready = std::make_shared<runtime>();
    ready->config = std::move(config);
    const auto& file = ready->config;
    for (const auto& [name, _] : file.chains)
        ready->chains.emplace(name, make_chain(name, file, stores, now));
    for (const auto& network : file.trusted_proxies)
        ready->client_address.trusted_proxies.add(network.text);
    if (file.forwarding.client_address == config::client_address_source::forwarded)
        ready->client_address.source = http::hop_source::forwarded;

    std::map<std::string, std::size_t> upstream_numbers;
    for (const auto& [name, upstream] : file.upstreams) {
        upstream_numbers.emplace(name, ready->upstreams.size());
        ready->upstreams.push_back({name, &upstream});
    }

    std::vector<http::route_pattern> patterns;
    for (const auto& from : file.routes) {
        ready_route route{.name = from.name, .config = &from};
        route.upstream_number = upstream_numbers.at(from.upstream);
        route.upstream = ready->upstreams[route.upstream_number].config;
        route.answers = from.answers ? &*from.answers : &file.answers;
        route.request_edits = make_edits(from.headers.request);
        route.response_edits = make_edits(from.headers.response);
        for (const auto& chain : from.chains)
            route.chains.push_back(&ready->chains.at(chain));
        // A route with several paths is several patterns in a row: the order of the file still decides.
        const auto paths = from.match.paths.empty() ? std::vector<std::string>{""} : from.match.paths;
        for (const auto& path : paths) {
            patterns.push_back(make_pattern(from.match, path));
            if (const auto problem = http::find_problem(patterns.back()); !problem.empty())
                throw std::runtime_error("routes: " + from.name + ": " + problem);
            ready->routes.push_back(route);
        }
    }
    ready->router = http::router(patterns);
    return ready;
}

} // namespace headgate
