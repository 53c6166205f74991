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
};

// One entry per feature; implementing the feature removes the entry.
const feature features[] = {
    {"forwarding trailers", [](finder& f) { f.at(!f.config.forwarding.trailers.empty(), "forwarding.trailers"); }},
    {"TLS",
     [](finder& f) {
         f.each_listener([&](const auto& x, const auto& path) { f.at(x.tls.has_value(), path + ".tls"); });
     }},
    {"the PROXY protocol",
     [](finder& f) {
         f.each_listener([&](const auto& x, const auto& path) { f.at(x.proxy_protocol, path + ".proxy_protocol"); });
     }},
    {"counting locally while Redis does not answer (`on_outage: local`; `open` and `closed` work)",
     [](finder& f) {
         f.each_redis([&](const auto& x, const auto& path) {
             f.at(x.outage == on_outage::local, f.given(path + ".on_outage") ? path + ".on_outage" : path);
         });
     }},
    {"leasing tokens",
     [](finder& f) {
         f.each_redis([&](const auto& x, const auto& path) { f.at(x.lease.has_value(), path + ".lease"); });
     }},
    {"identifying clients by their certificate",
     [](finder& f) {
         f.each_source([&](const key_source& x, const auto& path) { f.at(x.client_certificate.has_value(), path); });
     }},
};

} // namespace

std::vector<problem> not_built_yet(const gateway_config& config)
{
    std::vector<problem> problems;
    for (const auto& feature : features) {
        finder f{config, {}};
        feature.find(f);
        const auto message =
            std::string(feature.what) + " is not implemented in this version; remove it, or use a later version";
        // A configuration that was not loaded from a file has no places.
        for (const auto& path : f.found)
            problems.push_back(config.places ? config.places->make(severity::error, path, message)
                                             : problem{severity::error, {}, 0, 0, path, message});
    }
    std::stable_sort(problems.begin(), problems.end(), [](const problem& a, const problem& b) {
        return std::tuple(a.file, a.line, a.column) < std::tuple(b.file, b.line, b.column);
    });
    return problems;
}

} // namespace headgate::config
