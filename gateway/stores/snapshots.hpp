// The snapshots of the memory stores: loads them, saves them at their intervals, and follows the configuration.
#pragma once

#include "gateway/clock.hpp"
#include "gateway/compiled/chain.hpp"
#include "limiter/memory/snapshot.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace headgate {

class snapshots
{
public:
    explicit snapshots(const gateway_clock& clock) : clock_(clock) {}

    // Saves these stores as configured from now on. A store that is new gets the counters of its snapshot first.
    // REQUIRES: its groups are defined, and no request uses it yet.
    void use(const std::map<std::string, config::store_config>& configured, const store_map& stores);
    // Saves each store a last time.
    void stop() { keepers_.clear(); }
    // Returns the last error of each store whose snapshot could not be saved. May be called from any thread.
    std::map<std::string, std::string> failing() const;

private:
    struct keeper
    {
        config::snapshot_config config;
        std::unique_ptr<limiter::snapshot_keeper> saves;
    };
    void load(const std::string& name, limiter::memory_store& store, const std::string& path) const;
    void note(const std::string& name, const limiter::snapshot_saved& saved);

    const gateway_clock& clock_;
    std::set<std::string> known_; // stores that have their counters
    mutable std::mutex lock_;     // guards failing_
    std::map<std::string, std::string> failing_;
    std::map<std::string, keeper> keepers_; // by the store's name
};

} // namespace headgate
