#include "gateway/compiled/config.hpp"

#include <stdexcept>

namespace headgate {

// What the configuration lets pass has room: a chain's parts, a group's rules, a request's decisions.
static_assert(config::max_keys_a_chain <= limiter::max_parts);
static_assert(config::max_rules_a_key <= limiter::max_rules_a_group);
static_assert(config::max_rules_a_route <= limiter::max_decisions);

namespace {

http::route_pattern make_pattern(const config::route_match& match, const std::string& path)
{
    // `*.png` is short for every path that ends so.
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

} // namespace

std::shared_ptr<const tls_context> make_tls(const config::store_config& store)
{
    if (!store.url.tls)
        return nullptr;
    const auto files = store.tls.value_or(config::redis_tls_config{});
    return std::make_shared<const tls_context>(tls_client_files{files.ca, files.certificate, files.key});
}

std::shared_ptr<const compiled_config> compile_config(config::gateway_config config, store_map& stores,
                                                      limiter::time_point now)
{
    auto ready = std::make_shared<compiled_config>();
    ready->config = std::move(config);
    const auto& file = ready->config;
    std::vector<config::problem> problems;
    ready->verified_with = load_credentials(file, problems);
    if (!problems.empty())
        throw std::runtime_error(to_string(problems.front()));
    if (count_variants(file) > most_variants) // before anything is defined: a reload that fails must change nothing
        throw std::runtime_error(
            "chains: plans times overrides make more than 20000 sets of rules; use fewer of either");
    ready->plans = compile_plans(file);
    for (const auto& [name, _] : file.chains)
        ready->chains.emplace(name, compile_chain(name, file, ready->plans, stores, now));
    for (const auto& network : file.trusted_proxies)
        ready->client_address.trusted_proxies.add(network.text);
    if (file.forwarding.client_address == config::client_address_source::forwarded)
        ready->client_address.source = http::hop_source::forwarded;

    const auto unless_off = [](const std::string& text) { return text == "off" ? std::string_view{} : text; };
    ready->request_id_header = unless_off(file.forwarding.request_id.header);
    ready->via = unless_off(file.forwarding.via);

    std::map<std::string, std::size_t> upstream_numbers;
    for (const auto& [name, upstream] : file.upstreams) {
        upstream_numbers.emplace(name, ready->upstreams.size());
        ready->upstreams.push_back({name, &upstream});
    }

    for (const auto& name : shared_store_names(file))
        ready->shared_stores.push_back({name, &file.stores.at(name), make_tls(file.stores.at(name))});

    ready->answers.emplace_back(file.answers);
    std::vector<http::route_pattern> patterns;
    for (const auto& from : file.routes) {
        compiled_route route{.name = from.name, .config = &from};
        route.upstream_number = upstream_numbers.at(from.upstream);
        route.upstream = ready->upstreams[route.upstream_number].config;
        route.answers = from.answers ? &ready->answers.emplace_back(*from.answers) : &ready->answers.front();
        route.request_edits = make_edits(from.headers.request);
        route.response_edits = make_edits(from.headers.response);
        for (const auto& chain : from.chains)
            route.chains.push_back(&ready->chains.at(chain));
        route.cost = from.cost ? &*from.cost : nullptr;
        const auto& exempt = from.exempt;
        if (!exempt.methods.empty() || !exempt.paths.empty() || !exempt.networks.empty())
            route.exempt = &ready->exemptions.emplace_back(make_exemption(exempt));
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
