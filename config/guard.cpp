#include "config/guard.hpp"

#include "config/summary.hpp"

#include <set>

namespace headgate::config {

rule_config as_rule(const std::string& key, const new_identities_config& guard)
{
    rule_config rule;
    rule.name = key + ".new_identities";
    rule.key = {"client_ip"};
    rule.algorithm = limiter::algorithm::token_bucket;
    rule.limit = guard.limit;
    rule.rule = guard.rule;
    return rule;
}

bool can_be_invented(source_kind kind)
{
    switch (kind) {
    case source_kind::header:
    case source_kind::cookie:
    case source_kind::query:
    case source_kind::path_param:
    case source_kind::host:
    case source_kind::method:
        return true;
    case source_kind::jwt_claim:
    case source_kind::api_key:
    case source_kind::client_ip:
    case source_kind::route:
        break;
    }
    return false;
}

std::vector<std::string> guarded_keys(const route_config& route, const gateway_config& config)
{
    std::set<std::string> found;
    for (const auto& name : route.chains) {
        const auto chain = config.chains.find(name);
        if (chain == config.chains.end())
            continue;
        for (const auto& rule : chain->second.rules) {
            for (const auto& key : rule.key) {
                if (const auto known = config.keys.find(key);
                    known != config.keys.end() && known->second.new_identities)
                    found.insert(key);
            }
        }
    }
    return {found.begin(), found.end()};
}

std::string in_words(const std::string& key, const new_identities_config& guard)
{
    return limit_in_words(as_rule(key, guard)) + " for each address (IPv4 /" + std::to_string(guard.ipv4_prefix) +
           ", IPv6 /" + std::to_string(guard.ipv6_prefix) + "), at most " + std::to_string(guard.max_identities) +
           " identities remembered";
}

} // namespace headgate::config
