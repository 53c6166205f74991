#include "gateway/compiled/config.hpp"

#include "config/guard.hpp"

#include <algorithm>
#include <stdexcept>

namespace headgate {

// The configuration's limits fit the limiter's: a chain's parts, a group's rules, a request's decisions.
static_assert(config::max_keys_per_chain <= limiter::max_parts);
static_assert(config::max_rules_per_key <= limiter::max_rules_per_group);
static_assert(config::max_rules_per_route <= limiter::max_decisions);

namespace {

http::route_pattern make_pattern(const config::route_match& match, const std::string& path)
{
    // `*.png` stands for every path with this ending.
    http::route_pattern pattern{
        .hosts = match.hosts, .path = path.starts_with("*.") ? "/" + path : path, .methods = match.methods};
    for (const auto& [name, value] : match.headers)
        pattern.headers.push_back({name, value == "*" ? std::nullopt : std::optional(value)});
    return pattern;
}

compiled_exemption make_exemption(const config::exempt_config& from)
{
    compiled_exemption exempt{.methods = from.methods};
    for (const auto& network : from.networks)
        exempt.networks.add(network.text);
    std::vector<http::route_pattern> patterns;
    for (const auto& path : from.paths)
        patterns.push_back(make_pattern({}, path));
    exempt.has_paths = !patterns.empty();
    exempt.paths = http::router(patterns);
    return exempt;
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

// Returns an empty text for `off`.
std::string_view unless_off(const std::string& text) { return text == "off" ? std::string_view{} : text; }

void load_credentials_of(compiled_config& compiled, const compiled_config* running)
{
    std::vector<config::problem> problems;
    compiled.verified_with = load_credentials(compiled.source, problems, running ? &running->verified_with : nullptr);
    for (const auto& problem : problems) {
        if (problem.level == config::severity::error)
            throw std::runtime_error(to_string(problem));
    }
}

// Throws when the rules have too many variants. To be called before anything is defined in a store, because a reload
// that fails must change nothing.
void check_variants(const config::gateway_config& file)
{
    if (count_variants(file) > most_variants)
        throw std::runtime_error(
            "chains: plans times overrides make more than 20000 variants of rules; use fewer of either");
}

void compile_chains(compiled_config& compiled, store_map& stores, limiter::time_point now)
{
    const auto& file = compiled.source;
    for (const auto& name : shared_store_names(file))
        compiled.shared_stores.push_back({name, &file.stores.at(name), make_tls(file.stores.at(name))});
    compiled.plans = compile_plans(file);
    // First the chains whose limits Redis may be unable to count: those in memory change their store at once.
    for (const auto type : {config::store_type::redis, config::store_type::memory}) {
        for (const auto& [name, chain] : file.chains) {
            if (file.stores.at(chain.store).type == type)
                compiled.chains.emplace(name, compile_chain(name, file, compiled.plans, stores, now));
        }
    }
}

void compile_guards(compiled_config& compiled, guard_map& guards, limiter::time_point now)
{
    const auto& file = compiled.source;
    for (const auto& route : file.routes) {
        for (const auto& key : config::guarded_keys(route, file)) {
            const auto [made, is_new] = compiled.guards.try_emplace(key);
            if (is_new)
                compile_guard(made->second, key, file, compiled.plans, compiled.chains, guards, now);
        }
    }
    std::erase_if(guards, [&](const auto& each) { return !compiled.guards.contains(each.first); });
}

void compile_forwarding(compiled_config& compiled, std::string_view process_id)
{
    const auto& file = compiled.source;
    for (const auto& network : file.trusted_proxies)
        compiled.client_address.trusted_proxies.add(network.text);
    if (file.forwarding.client_address == config::client_address_source::forwarded)
        compiled.client_address.source = http::hop_source::forwarded;
    compiled.request_id_header = unless_off(file.forwarding.request_id.header);
    if (const auto name = unless_off(file.forwarding.via); !name.empty())
        compiled.via.append(name).append("-").append(process_id);
    for (const auto& [name, upstream] : file.upstreams)
        compiled.upstreams.push_back({name, &upstream});
}

compiled_route compile_route(const config::route_config& from, compiled_config& compiled)
{
    compiled_route route{.name = from.name, .config = &from};
    const auto to = std::find_if(compiled.upstreams.begin(), compiled.upstreams.end(),
                                 [&](const compiled_upstream& each) { return each.name == from.upstream; });
    route.upstream_number = static_cast<std::size_t>(to - compiled.upstreams.begin());
    route.upstream = to->config;
    route.answers = from.answers ? &compiled.answers.emplace_back(*from.answers) : &compiled.answers.front();
    route.request_edits = make_edits(from.headers.request);
    route.response_edits = make_edits(from.headers.response);
    for (const auto& key : config::guarded_keys(from, compiled.source))
        route.chains.push_back(&compiled.guards.at(key).chain);
    for (const auto& chain : from.chains)
        route.chains.push_back(&compiled.chains.at(chain));
    route.cost = from.cost ? &*from.cost : nullptr;
    const auto& exempt = from.exempt;
    if (!exempt.methods.empty() || !exempt.paths.empty() || !exempt.networks.empty())
        route.exempt = &compiled.exemptions.emplace_back(make_exemption(exempt));
    return route;
}

// A route with several paths becomes several consecutive patterns, so the order of the file still decides.
std::vector<std::string> paths_of(const config::route_config& route)
{
    return route.match.paths.empty() ? std::vector<std::string>{""} : route.match.paths;
}

void compile_patterns(compiled_config& compiled)
{
    std::vector<http::route_pattern> patterns;
    for (const auto& from : compiled.source.routes) {
        for (const auto& path : paths_of(from)) {
            patterns.push_back(make_pattern(from.match, path));
            if (const auto problem = http::find_problem(patterns.back()); !problem.empty())
                throw std::runtime_error("routes: " + from.name + ": " + problem);
        }
    }
    compiled.router = http::router(patterns);
}

void compile_routes(compiled_config& compiled)
{
    compiled.answers.emplace_back(compiled.source.answers);
    for (const auto& from : compiled.source.routes) {
        const auto route = compile_route(from, compiled);
        compiled.routes.insert(compiled.routes.end(), paths_of(from).size(), route);
    }
}

} // namespace

std::shared_ptr<const tls_context> make_tls(const config::store_config& store)
{
    if (!store.url.tls)
        return nullptr;
    const auto files = store.tls.value_or(config::redis_tls_config{});
    return std::make_shared<const tls_context>(tls_client_files{files.ca, files.certificate, files.key});
}

std::shared_ptr<const compiled_config> compile_config(config::gateway_config config, store_map& stores,
                                                      limiter::time_point now, std::string_view process_id,
                                                      const compiled_config* running, guard_map* guards)
{
    guard_map own;
    auto compiled = std::make_shared<compiled_config>();
    compiled->source = std::move(config);
    load_credentials_of(*compiled, running);
    check_variants(compiled->source);
    compile_patterns(*compiled);
    compile_chains(*compiled, stores, now);
    compile_guards(*compiled, guards ? *guards : own, now);
    compile_forwarding(*compiled, process_id);
    compile_routes(*compiled);
    return compiled;
}

} // namespace headgate
