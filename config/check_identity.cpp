// Checks of tokens, API keys, keys and plans.
#include "config/check.hpp"
#include "config/choices.hpp"

#include <algorithm>

namespace headgate::config {

namespace {

void check_jwt(checker& c, const jwt_config& jwt, const std::string& path)
{
    if (jwt.algorithms.empty() && c.at.given(path + ".algorithms") && c.is_valid(path + ".algorithms"))
        c.error(path + ".algorithms",
                "the list is empty, so no token would be accepted; list at least one algorithm, such as RS256");
    const bool hs = std::any_of(jwt.algorithms.begin(), jwt.algorithms.end(),
                                [](jwt_algorithm a) { return a <= jwt_algorithm::HS512; });
    const bool others = std::any_of(jwt.algorithms.begin(), jwt.algorithms.end(),
                                    [](jwt_algorithm a) { return a > jwt_algorithm::HS512; });
    const int sources =
        int(c.at.given(path + ".secret")) + int(c.at.given(path + ".public_key")) + int(c.at.given(path + ".jwks"));
    if (sources != 1)
        c.error(path, sources == 0 ? "there is no key to verify tokens with; add `secret`, `public_key` or `jwks`"
                                   : "give only one of `secret`, `public_key` and `jwks`");
    // With both kinds of algorithms a token could be signed with the public key as an HS secret.
    else if (hs && !jwt.public_key.empty())
        c.error(path + ".algorithms", "HS signatures must not be verified with a public key, because anyone who has it "
                                      "could sign; use `secret`, or remove HS from the list");
    else if (others && !jwt.secret.empty())
        c.error(path + ".algorithms",
                "a `secret` verifies only HS signatures; use `public_key` or `jwks` for the others");
}

class key_cycles
{
public:
    explicit key_cycles(checker& c) : c_(c) {}

    void visit(const std::string& name)
    {
        if (done_.contains(name))
            return;
        done_.insert(name);
        open_.push_back(name);
        for (const auto& source : c_.config.keys.at(name).sources)
            if (!source.name.empty() && !is_builtin_key(source.name))
                follow(source.name);
        open_.pop_back();
    }

private:
    void follow(const std::string& next)
    {
        if (const auto it = std::find(open_.begin(), open_.end(), next); it != open_.end()) {
            std::string circle;
            for (auto at = it; at != open_.end(); ++at)
                circle += *at + " -> ";
            c_.error("keys." + next, "the keys refer to each other in a cycle: " + circle + next);
        } else if (c_.config.keys.contains(next) && open_.size() < max_depth_of_keys) {
            visit(next);
        } else if (open_.size() >= max_depth_of_keys) {
            c_.error("keys." + next, "keys refer to each other more than 32 levels deep");
        }
    }

    static constexpr std::size_t max_depth_of_keys = 32;
    checker& c_;
    std::vector<std::string> open_;
    std::set<std::string> done_;
};

void check_plans(checker& c, plans_config& plans)
{
    const auto known = [&](const std::string& plan) {
        return std::find(plans.names.begin(), plans.names.end(), plan) != plans.names.end();
    };
    const auto must_be_known = [&](const std::string& plan, const std::string& path) {
        if (c.is_valid("plans.names") && c.is_valid(path) && !known(plan))
            c.error(path, c.quote(path, plan) + " is not in `plans.names`" + did_you_mean(plan, plans.names));
    };
    if (!plans.default_plan.empty())
        must_be_known(plans.default_plan, "plans.default");
    for (const auto& [value, plan] : plans.overrides)
        must_be_known(plan, "plans.overrides." + value);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < plans.names.size(); ++i)
        if (!seen.insert(plans.names[i]).second)
            c.error("plans.names[" + std::to_string(i) + "]", "this plan is listed twice; remove one");
    check_sources(c, plans.sources, "plans.sources");
    check_plan_overrides(c, plans, "plans.overrides");
}

// Returns whether a path of any route has this parameter.
bool is_param_of_a_route(const gateway_config& config, const std::string& name)
{
    const auto has_it = [&](const std::string& path) { return path.find("{" + name + "}") != std::string::npos; };
    return std::any_of(config.routes.begin(), config.routes.end(), [&](const route_config& route) {
        return std::any_of(route.match.paths.begin(), route.match.paths.end(), has_it);
    });
}

void warn_of_missing_params(checker& c, const std::vector<key_source>& sources, const std::string& path)
{
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto& param = sources[i].path_param;
        const auto place = path + "[" + std::to_string(i) + "].path_param";
        if (param && !is_param_of_a_route(c.config, *param))
            c.warn(place, "no route has the parameter " + c.quote(place, "{" + *param + "}") +
                              ", so this source is never present; add it to a path, as in /users/{" +
                              (c.at.is_from_environment(place) ? "id" : *param) + "}");
    }
}

// Returns the plans that a rule has a limit for.
std::set<std::string> plans_of_rules(const gateway_config& config)
{
    std::set<std::string> out;
    for (const auto& [_, chain] : config.chains)
        for (const auto& rule : chain.rules)
            for (const auto& [plan, limit] : rule.plans)
                out.insert(plan);
    return out;
}

// A plan is of use when some rule tells it from the default plan.
void warn_of_unused_plans(checker& c, const plans_config& plans)
{
    const auto used = plans_of_rules(c.config);
    if (used.empty())
        return c.warn("plans", "no rule has limits by plan; add `plans` to a rule, as in plans: { " +
                                   plans.default_plan + ": 60/minute }, or remove this");
    if (used.contains(plans.default_plan))
        return;
    for (std::size_t i = 0; i < plans.names.size(); ++i)
        if (plans.names[i] != plans.default_plan && !used.contains(plans.names[i]))
            c.warn("plans.names[" + std::to_string(i) + "]",
                   "no rule has a limit for this plan, so it is the same as the default plan; add it to the `plans` of "
                   "a rule, or remove it");
}

} // namespace

void warn_of_unused_identity(checker& c)
{
    for (const auto& [name, key] : c.config.keys) {
        const auto path = "keys." + name;
        warn_of_missing_params(c, key.sources, c.at.given(path + ".sources") ? path + ".sources" : path);
    }
    if (!c.config.plans)
        return;
    warn_of_missing_params(c, c.config.plans->sources, "plans.sources");
    warn_of_unused_plans(c, *c.config.plans);
}

void check_sources(checker& c, const std::vector<key_source>& sources, const std::string& path)
{
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto& source = sources[i];
        const auto place = path + "[" + std::to_string(i) + "]";
        if (!source.name.empty() && !is_builtin_key(source.name))
            c.must_exist(c.config.keys, "keys", source.name, place, c.used_keys);
        if (source.api_key && !source.api_key->table.empty())
            c.must_exist(c.config.api_keys, "api_keys", source.api_key->table, place + ".api_key.table",
                         c.used_api_keys);
        if (!source.jwt_claim)
            continue;
        const auto& provider = source.jwt_claim->provider;
        if (!provider.empty())
            c.must_exist(c.config.jwt, "jwt", provider, place + ".jwt_claim.provider", c.used_jwt);
        else if (c.config.jwt.size() == 1)
            c.used_jwt.insert(c.config.jwt.begin()->first);
        else if (c.is_valid("jwt"))
            c.error(place + ".jwt_claim",
                    c.config.jwt.empty()
                        ? "a claim is read from a verified token; add an entry to `jwt`"
                        : "there are several entries in `jwt`; name one, as in { claim: sub, provider: NAME }");
    }
}

void check_identity(checker& c)
{
    for (const auto& [name, jwt] : c.config.jwt)
        if (c.is_valid("jwt." + name))
            check_jwt(c, jwt, "jwt." + name);
    key_cycles cycles(c);
    for (const auto& [name, key] : c.config.keys) {
        const auto path = "keys." + name;
        if (is_builtin_key(name))
            c.error(path, "`" + name + "` is built in and cannot be defined again; choose another name");
        if (key.sources.empty() && c.is_valid(path) && c.is_valid(path + ".sources"))
            c.error(path, "the key has no source; write e.g. [ { header: X-API-Key }, client_ip ]");
        check_sources(c, key.sources, c.at.given(path + ".sources") ? path + ".sources" : path);
        cycles.visit(name);
    }
    if (c.config.plans)
        check_plans(c, *c.config.plans);
}

} // namespace headgate::config
