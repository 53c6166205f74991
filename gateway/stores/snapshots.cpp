#include "gateway/stores/snapshots.hpp"

#include <spdlog/spdlog.h>

namespace headgate {

void snapshots::use(const std::map<std::string, config::store_config>& configured, const store_map& stores)
{
    for (auto each = keepers_.begin(); each != keepers_.end();) {
        const auto now = configured.find(each->first);
        if (now != configured.end() && now->second.snapshot == each->second.config) {
            ++each;
            continue;
        }
        const auto name = each->first;
        each = keepers_.erase(each); // saves a last time
        std::lock_guard guard(lock_);
        failing_.erase(name);
    }
    for (const auto& [name, store] : stores) {
        const bool is_new = known_.insert(name).second;
        const auto from = configured.find(name);
        if (from == configured.end() || !from->second.snapshot || keepers_.contains(name))
            continue;
        const auto& wanted = *from->second.snapshot;
        if (is_new)
            load(name, *store, wanted.path);
        auto saves = std::make_unique<limiter::snapshot_keeper>(
            *store, wanted.path, wanted.interval, [this] { return clock_.moment_now(); },
            [this, name = name](const limiter::snapshot_saved& saved) { note(name, saved); });
        keepers_.emplace(name, keeper{wanted, std::move(saves)});
    }
}

void snapshots::load(const std::string& name, limiter::memory_store& store, const std::string& path) const
{
    const auto loaded = limiter::load_snapshot(store, path, clock_.now());
    if (!loaded.error.empty())
        spdlog::warn("store {}: snapshot {} ignored: {}; all counters start at zero", name, path, loaded.error);
    else if (loaded.found)
        spdlog::info("store {}: {} keys from snapshot {}", name, loaded.keys, path);
}

void snapshots::note(const std::string& name, const limiter::snapshot_saved& saved)
{
    if (!saved.error.empty())
        spdlog::error("store {}: snapshot failed: {}", name, saved.error);
    std::lock_guard guard(lock_);
    if (saved.error.empty())
        failing_.erase(name);
    else
        failing_[name] = saved.error;
}

std::map<std::string, std::string> snapshots::failing() const
{
    std::lock_guard guard(lock_);
    return failing_;
}

} // namespace headgate
