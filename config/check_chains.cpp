// Checks of chains and their rules. Also builds the limiter's rules.
#include "config/check.hpp"
#include "config/choices.hpp"
#include "config/model.hpp"

#include <algorithm>
#include <filesystem>

namespace headgate::config {

namespace {

// Reads time zones by name, each file once.
class zone_reader
{
public:
    explicit zone_reader(checker& c) : c_(c) {}

    std::shared_ptr<const limiter::time_zone> read(const std::string& name, const std::string& path)
    {
        if (name == "UTC" || !c_.is_valid(path))
            return nullptr;
        const auto [it, is_new] = zones_.try_emplace(name);
        if (is_new && is_zone_name(name)) {
            constexpr std::uintmax_t most = std::uintmax_t{1024} * 1024;
            const auto file = c_.env.read("/usr/share/zoneinfo/" + name, most);
            if (file.complaint.empty())
                it->second = limiter::time_zone::parse(file.text);
        }
        if (!it->second)
            c_.error(path, c_.quote(path, name) + " is not a time zone in /usr/share/zoneinfo; write e.g. Europe/Paris "
                                                  "(and install tzdata if it is missing)");
        return it->second;
    }

private:
    // The name becomes part of a path and must not lead out of the folder.
    static bool is_zone_name(const std::string& name)
    {
        return name.size() <= 64 && name.front() != '/' && name.find("..") == std::string::npos &&
               std::all_of(name.begin(), name.end(), [](char ch) {
                   return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
                          ch == '_' || ch == '-' || ch == '+' || ch == '/';
               });
    }

    checker& c_;
    std::map<std::string, std::shared_ptr<const limiter::time_zone>> zones_;
};

void check_rule_key(checker& c, const rule_config& rule, const std::string& path)
{
    if (rule.key.empty() && c.at.given(path + ".key") && c.is_valid(path + ".key"))
        c.error(path + ".key", "the rule has no key; write e.g. user, route or [ user, route ]");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < rule.key.size(); ++i) {
        const auto listed = path + ".key[" + std::to_string(i) + "]";
        const auto place = c.at.given(listed) ? listed : path + ".key";
        if (rule.key[i].empty())
            continue;
        if (!seen.insert(rule.key[i]).second)
            c.error(place, c.quote(place, rule.key[i]) + " is listed twice in this key; remove one");
        else if (!is_builtin_key(rule.key[i]))
            c.must_exist(c.config.keys, "keys", rule.key[i], place, c.used_keys);
    }
}

// Builds the limiter's rules of plans and overrides.
void build_variants(checker& c, const rule_config& rule, const std::map<std::string, limit_value>& limits,
                    const std::string& path, std::map<std::string, limiter::rule>& out)
{
    for (const auto& [name, limit] : limits) {
        const auto place = path + "." + name;
        if (!c.is_valid(place) || limit.what == limit_value::form::unlimited ||
            limit.what == limit_value::form::blocked)
            continue;
        auto built = build_rule(rule, limit, rule.rule.zone);
        for (const auto& complaint : built.complaints)
            // Errors in the rule itself have been reported.
            if (complaint.key == "limit" || complaint.key == "cost" || complaint.key == "initial")
                c.error(place, complaint.message);
        out.emplace(name, std::move(built.rule));
    }
}

void check_rule(checker& c, rule_config& rule, const std::string& path, zone_reader& zones)
{
    check_rule_key(c, rule, path);
    for (const auto& [plan, limit] : rule.plans) {
        if (!c.config.plans)
            c.error(path + ".plans", "there are no plans; add `plans` with their names at the top level of the file");
        else if (const auto& names = c.config.plans->names;
                 c.is_valid("plans.names") && std::find(names.begin(), names.end(), plan) == names.end())
            c.error(path + ".plans." + plan, "`" + plan + "` is not in `plans.names`" + did_you_mean(plan, names));
        if (!c.config.plans)
            break;
    }
    const auto zone = zones.read(rule.time_zone, path + ".time_zone");
    const bool valid = c.at.given(path + ".limit") && c.is_valid(path + ".limit") && c.is_valid(path + ".algorithm") &&
                       c.is_valid(path + ".burst") && c.is_valid(path + ".capacity") && c.is_valid(path + ".cost") &&
                       c.is_valid(path + ".delay") && c.is_valid(path + ".initial");
    if (!valid)
        return;
    auto built = build_rule(rule, rule.limit, zone);
    for (const auto& complaint : built.complaints)
        c.error(path + "." + complaint.key, complaint.message);
    rule.rule = std::move(built.rule);
    if (!built.complaints.empty())
        return;
    build_variants(c, rule, rule.plans, path + ".plans", rule.plan_rules);
    build_variants(c, rule, rule.overrides, path + ".overrides", rule.override_rules);
    check_overrides(c, rule, path + ".overrides");
    if (rule.algorithm == limiter::algorithm::concurrency && rule.outcome)
        c.error(path + ".outcome", "a concurrency rule releases its charge when the request ends; remove `outcome`");
    if (rule.algorithm == limiter::algorithm::concurrency && !rule.cost.settle.empty())
        c.error(path + ".cost.settle", "a concurrency rule releases its charge when the request ends; remove `settle`");
}

// The limiter has room for a fixed number of keys and of rules per key.
void check_size(checker& c, const chain_config& chain, const std::string& path)
{
    std::map<std::vector<std::string>, std::size_t> rules_of;
    for (std::size_t i = 0; i < chain.rules.size(); ++i) {
        const auto place = path + ".rules[" + std::to_string(i) + "].key";
        const auto& key = chain.rules[i].key;
        if (key.empty() || !c.is_valid(place))
            continue;
        const auto same = ++rules_of[key];
        if (same == 1 && rules_of.size() == max_keys_per_chain + 1)
            c.error(place, "the chain has more than " + std::to_string(max_keys_per_chain) +
                               " different keys; move this rule and those after it to another chain");
        if (same == max_rules_per_key + 1)
            c.error(place, "more than " + std::to_string(max_rules_per_key) +
                               " rules of the chain share this key; move this one to another chain");
    }
}

void check_store(checker& c, chain_config& chain, const std::string& path)
{
    if (!chain.store.empty())
        c.must_exist(c.config.stores, "stores", chain.store, path + ".store", c.used_stores);
    else if (!c.is_valid(path + ".store") || !c.is_valid("stores"))
        return;
    else if (c.config.stores.size() == 1) {
        chain.store = c.config.stores.begin()->first;
        c.used_stores.insert(chain.store);
    } else
        c.error(path + ".store", c.config.stores.empty()
                                     ? "there is no store; add e.g. `stores: { local: { type: memory } }`"
                                     : "there are several stores; name one of them");
}

} // namespace

void check_chains(checker& c)
{
    zone_reader zones(c);
    for (auto& [name, chain] : c.config.chains) {
        const auto path = "chains." + name;
        if (!c.is_valid(path))
            continue;
        check_store(c, chain, path);
        if (chain.rules.empty() && c.at.given(path + ".rules") && c.is_valid(path + ".rules"))
            c.error(path + ".rules", "the chain has no rule; add one, or remove the chain");
        check_size(c, chain, path);
        std::map<std::string, std::size_t> seen;
        for (std::size_t i = 0; i < chain.rules.size(); ++i) {
            const auto place = path + ".rules[" + std::to_string(i) + "]";
            const auto& rule = chain.rules[i];
            const auto [first, is_new] = seen.emplace(rule.name, i);
            if (!is_new && !rule.name.empty())
                c.error(place + ".name", c.quote(place + ".name", rule.name) + " is already the name of rules[" +
                                             std::to_string(first->second) + "]; give each rule its own name");
            check_rule(c, chain.rules[i], place, zones);
            const auto store = c.config.stores.find(chain.store);
            if (rule.outage && store != c.config.stores.end() && store->second.type == store_type::memory)
                c.error(place + ".on_outage",
                        "the store `" + chain.store + "` is in memory and has no outages; remove this key");
        }
    }
}

} // namespace headgate::config
