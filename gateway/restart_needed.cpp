#include "gateway/restart_needed.hpp"

#include <algorithm>
#include <thread>

namespace headgate {

std::size_t worker_count(const config::gateway_config& config)
{
    return config.workers ? config.workers : std::max(1U, std::thread::hardware_concurrency());
}

std::vector<config::problem> restart_needed(const config::gateway_config& next, std::size_t workers,
                                            const store_map& stores, const guard_map& guards)
{
    std::vector<config::problem> found;
    const auto add = [&](const std::string& key, std::size_t wanted, std::size_t running) {
        const auto text =
            std::to_string(wanted) + " takes effect at the next restart; " + std::to_string(running) + " stays in use";
        found.push_back(next.places ? next.places->make(config::severity::warning, key, text)
                                    : config::problem{config::severity::warning, {}, 0, 0, key, text});
    };
    if (worker_count(next) != workers)
        add("workers", worker_count(next), workers);
    for (const auto& [name, store] : next.stores) {
        const auto running = stores.find(name);
        const bool is_memory = store.type == config::store_type::memory && running != stores.end();
        if (is_memory && running->second->max_keys() != store.max_keys)
            add("stores." + name + ".max_keys", store.max_keys, running->second->max_keys());
    }
    for (const auto& [name, key] : next.keys) {
        const auto running = guards.find(name);
        if (key.new_identities && running != guards.end() &&
            running->second->max_identities() != key.new_identities->max_identities)
            add("keys." + name + ".new_identities.max_identities", key.new_identities->max_identities,
                running->second->max_identities());
    }
    return found;
}

} // namespace headgate
