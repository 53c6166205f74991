#include "config/load.hpp"

#include <algorithm>
#include <tuple>

namespace headgate::config {

namespace {

// Collects the paths at which a feature is used.
struct finder
{
    const gateway_config& config;
    std::vector<std::string> found;

    void at(bool used, std::string path)
    {
        if (used)
            found.push_back(std::move(path));
    }
    bool given(const std::string& path) const { return config.places && config.places->given(path); }

    template <class Visit>
    void each_listener(Visit visit)
    {
        for (std::size_t i = 0; i < config.listeners.size(); ++i)
            visit(config.listeners[i], "listeners[" + std::to_string(i) + "]");
    }
    template <class Visit>
    void each_redis(Visit visit)
    {
        for (const auto& [name, store] : config.stores)
            if (store.type == store_type::redis)
                visit(store, "stores." + name);
    }
    template <class Visit>
    void each_rule(Visit visit)
    {
        for (const auto& [name, chain] : config.chains)
            for (std::size_t i = 0; i < chain.rules.size(); ++i)
                visit(chain.rules[i], "chains." + name + ".rules[" + std::to_string(i) + "]");
    }
    template <class Visit>
    void each_source(Visit visit)
    {
        for (const auto& [name, key] : config.keys)
            for (std::size_t i = 0; i < key.sources.size(); ++i) {
                const auto path = "keys." + name;
                visit(key.sources[i],
                      (given(path + ".sources") ? path + ".sources[" : path + "[") + std::to_string(i) + "]");
            }
        for (std::size_t i = 0; config.plans && i < config.plans->sources.size(); ++i)
            visit(config.plans->sources[i], "plans.sources[" + std::to_string(i) + "]");
    }
};

struct feature
{
    const char* what;
    void (*find)(finder& f);
    const char* instead = "remove it, or use a later version";
};

// One entry per feature; implementing the feature removes the entry.
const feature features[] = {
    {"forwarding trailers", [](finder& f) { f.at(!f.config.forwarding.trailers.empty(), "forwarding.trailers"); }},
    {"TLS for clients",
     [](finder& f) {
         f.each_listener([&](const auto& x, const auto& path) { f.at(x.tls.has_value(), path + ".tls"); });
     }},
    {"the PROXY protocol",
     [](finder& f) {
         f.each_listener([&](const auto& x, const auto& path) { f.at(x.proxy_protocol, path + ".proxy_protocol"); });
     }},
    {"counting locally while Redis does not answer",
     [](finder& f) {
         f.each_redis(
             [&](const auto& x, const auto& path) { f.at(x.outage == on_outage::local, path + ".on_outage"); });
         f.each_rule(
             [&](const rule_config& x, const auto& path) { f.at(x.outage == on_outage::local, path + ".on_outage"); });
     },
     "write `open` (requests pass without limits) or `closed` (requests are refused)"},
    {"leasing tokens",
     [](finder& f) {
         f.each_redis([&](const auto& x, const auto& path) { f.at(x.lease.has_value(), path + ".lease"); });
     }},
    {"identifying clients by their certificate",
     [](finder& f) {
         f.each_source([&](const key_source& x, const auto& path) { f.at(x.client_certificate.has_value(), path); });
     }},
};

void add(const finder& f, severity level, const std::string& message, std::vector<problem>& problems)
{
    // A configuration that was not loaded from a file has no places.
    for (const auto& path : f.found)
        problems.push_back(f.config.places ? f.config.places->make(level, path, message)
                                           : problem{level, {}, 0, 0, path, message});
}

// A file that relies on a default which will change says so at each start.
void warn_of_changing_default(const gateway_config& config, std::vector<problem>& problems)
{
    finder f{config, {}};
    f.each_redis([&](const auto&, const auto& path) { f.at(!f.given(path + ".on_outage"), path + ".on_outage"); });
    add(f, severity::warning,
        "this is not given, so it is `open`: requests pass without limits while Redis does not answer. A later "
        "version will count locally, and `local` will be the default; write `on_outage: open` or `on_outage: closed` "
        "to choose",
        problems);
}

} // namespace

std::vector<problem> not_built_yet(const gateway_config& config)
{
    std::vector<problem> problems;
    for (const auto& feature : features) {
        finder f{config, {}};
        feature.find(f);
        add(f, severity::error, std::string(feature.what) + " is not implemented in this version; " + feature.instead,
            problems);
    }
    warn_of_changing_default(config, problems);
    std::stable_sort(problems.begin(), problems.end(), [](const problem& a, const problem& b) {
        return std::tuple(a.file, a.line, a.column) < std::tuple(b.file, b.line, b.column);
    });
    return problems;
}

std::vector<std::string> features_not_built()
{
    std::vector<std::string> names;
    for (const auto& feature : features)
        names.emplace_back(feature.what);
    return names;
}

} // namespace headgate::config
