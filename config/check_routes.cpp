// Checks of upstreams, routes and answers.
#include "config/check.hpp"
#include "config/guard.hpp"
#include "config/model.hpp"
#include "config/values.hpp"

#include <algorithm>
#include <unordered_map>

namespace headgate::config {

namespace {

void check_upstream(checker& c, const upstream_config& upstream, const std::string& path)
{
    if (!c.is_valid(path) || !c.is_valid(path + ".servers") || !c.is_valid(path + ".echo"))
        return;
    if (upstream.echo && !upstream.servers.empty())
        c.error(path + ".servers", "an echo upstream has no servers; remove `servers`, or `echo`");
    else if (!upstream.echo && upstream.servers.empty())
        c.error(path, "the upstream has no servers; write `servers: [ 127.0.0.1:9000 ]`, or `echo: true`");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < upstream.servers.size(); ++i) {
        const auto place = path + ".servers[" + std::to_string(i) + "]";
        if (c.is_valid(place) && !seen.insert(upstream.servers[i].text()).second)
            c.error(place, "this server is listed twice; remove one");
    }
    if (upstream.host != "keep" && upstream.host != "rewrite")
        if (const auto complaint = check_host_pattern(upstream.host);
            !complaint.empty() || upstream.host.starts_with("*"))
            c.error(path + ".host", "it must be `keep`, `rewrite` or a host such as api.example.com");
}

// Reads the file now, so that `headgate check` and a reload report a file that cannot be used.
void read_body_file(checker& c, answers_config& answers, const std::string& path)
{
    constexpr std::uintmax_t most = std::uintmax_t{64} * 1024;
    auto read = c.env.read(answers.body_file, most);
    if (!read.complaint.empty())
        c.error(path, "the body cannot be read: " + read.complaint);
    answers.body_template = std::move(read.text);
}

// `body` and `body_file` are alternatives: either one of a route replaces either one of the top level.
void choose_body(checker& c, answers_config& answers, const std::string& path)
{
    const bool own_body = c.at.given(path + ".body"), own_file = c.at.given(path + ".body_file");
    if (own_body && own_file) {
        c.error(path + ".body_file", "`body` is given as well; keep one of them");
    } else if (own_body) {
        answers.body_file.clear();
        answers.body_template = answers.body;
    } else if (own_file && c.is_valid(path + ".body_file")) {
        answers.body.clear();
        if (!answers.body_file.empty())
            read_body_file(c, answers, path + ".body_file");
    } else {
        answers.body_template = c.config.answers.body_template;
    }
}

void check_answers(checker& c, answers_config& answers, const std::string& path)
{
    choose_body(c, answers, path);
    if (c.at.given(path + ".content_type") && answers.body.empty() && answers.body_file.empty() &&
        c.is_valid(path + ".body") && c.is_valid(path + ".body_file"))
        c.error(path + ".content_type",
                "this is the type of `body` or `body_file` and neither is given; add one, or remove this");
}

void check_params(checker& c, const route_match& match, const std::string& path)
{
    for (std::size_t i = 0; i < match.paths.size(); ++i) {
        std::set<std::string> seen;
        const std::string_view text = match.paths[i];
        for (auto open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
            const auto name = std::string(text.substr(open + 1, text.find('}', open) - open - 1));
            const auto listed = path + ".path[" + std::to_string(i) + "]";
            if (!seen.insert(name).second)
                c.error(c.at.given(listed) ? listed : path + ".path",
                        "the parameter {" + name + "} appears twice in this path; give each parameter its own name");
        }
    }
}

// The cost of a route must not exceed what its rules can admit at once.
void check_cost(checker& c, const route_config& route, const std::string& path)
{
    if (!route.cost || !c.is_valid(path + ".cost"))
        return;
    const auto cost = minimum_cost(*route.cost);
    for (const auto& name : route.chains) {
        const auto chain = c.config.chains.find(name);
        if (chain == c.config.chains.end())
            continue;
        for (std::size_t i = 0; i < chain->second.rules.size(); ++i) {
            const auto rule = "chains." + name + ".rules[" + std::to_string(i) + "]";
            if (chain->second.rules[i].algorithm == limiter::algorithm::concurrency)
                continue; // counts requests, not their cost
            if (c.at.given(rule + ".limit") && !c.at.given(rule + ".cost") &&
                cost > chain->second.rules[i].rule.limit() && c.is_valid(rule + ".limit"))
                c.error(path + ".cost", "one request costs " + std::to_string(cost) + ", more than " + rule +
                                            " can admit at once; lower the cost, or raise the limit");
        }
    }
}

// The gateway reserves room for a fixed number of decisions per request.
void check_size(checker& c, const route_config& route, const std::string& path)
{
    std::size_t rules = 0;
    for (std::size_t i = 0; i < route.chains.size(); ++i) {
        const auto listed = path + ".chains[" + std::to_string(i) + "]";
        const auto place = c.at.given(listed) ? listed : path + ".chains";
        const auto chain = c.config.chains.find(route.chains[i]);
        const auto more = chain == c.config.chains.end() ? 0 : chain->second.rules.size();
        if (i == max_chains_per_route)
            c.error(place,
                    "a route has at most " + std::to_string(max_chains_per_route) + " chains; merge some of them");
        if (rules <= max_rules_per_route && rules + more > max_rules_per_route)
            c.error(place, "the chains of the route have more than " + std::to_string(max_rules_per_route) +
                               " rules in total; remove some");
        rules += more;
    }
    const auto guards = guarded_keys(route, c.config).size();
    const bool fits = rules <= max_rules_per_route && route.chains.size() <= max_chains_per_route; // else reported
    if (guards > 0 && fits &&
        (route.chains.size() + guards > max_chains_per_route || rules + guards > max_rules_per_route))
        c.error(path + ".chains",
                "each key with `new_identities` that the chains use counts as a chain, and a route has "
                "at most " +
                    std::to_string(max_chains_per_route) + " chains and " + std::to_string(max_rules_per_route) +
                    " rules; merge some of them");
}

void check_route(checker& c, route_config& route, const std::string& path)
{
    std::set<std::string> seen;
    for (std::size_t i = 0; i < route.chains.size(); ++i) {
        const auto listed = path + ".chains[" + std::to_string(i) + "]";
        const auto place = c.at.given(listed) ? listed : path + ".chains";
        if (route.chains[i].empty())
            continue;
        if (!seen.insert(route.chains[i]).second)
            c.error(place, c.quote(place, route.chains[i]) + " is listed twice; a chain is charged once per request");
        else
            c.must_exist(c.config.chains, "chains", route.chains[i], place, c.used_chains);
    }
    check_size(c, route, path);
    if (!route.upstream.empty())
        c.must_exist(c.config.upstreams, "upstreams", route.upstream, path + ".upstream", c.used_upstreams);
    if (!route.rewrite.replace_prefix.empty() && route.rewrite.strip_prefix.empty() &&
        c.is_valid(path + ".rewrite.strip_prefix"))
        c.error(path + ".rewrite.replace_prefix", "this replaces `strip_prefix`, which is missing; add it");
    check_params(c, route.match, path + ".match");
    check_cost(c, route, path);
    if (route.answers)
        check_answers(c, *route.answers, path + ".answers");
}

} // namespace

void check_routes(checker& c)
{
    for (const auto& [name, upstream] : c.config.upstreams)
        check_upstream(c, upstream, "upstreams." + name);
    check_answers(c, c.config.answers, "answers");
    if (c.config.routes.empty() && c.at.given("routes") && c.is_valid("routes"))
        c.error("routes", "there is no route; add e.g. `- { name: all, upstream: demo }`");
    std::unordered_map<std::string, std::size_t> names;
    for (std::size_t i = 0; i < c.config.routes.size(); ++i) {
        const auto path = "routes[" + std::to_string(i) + "]";
        auto& route = c.config.routes[i];
        const auto [first, is_new] = names.emplace(route.name, i);
        if (!is_new && !route.name.empty())
            c.error(path + ".name",
                    c.quote(path + ".name", route.name) + " is already the name of routes[" +
                        std::to_string(first->second) + "] at line " +
                        std::to_string(c.at.find("routes[" + std::to_string(first->second) + "]").line) +
                        "; give each route its own name");
        check_route(c, route, path);
    }
}

} // namespace headgate::config
