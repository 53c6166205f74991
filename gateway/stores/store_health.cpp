#include "gateway/stores/store_health.hpp"

#include <spdlog/spdlog.h>

namespace headgate {

namespace {

constexpr std::chrono::seconds between_looks{1};
constexpr std::chrono::minutes period{1}; // of lines in the log, and how long /readyz warns

} // namespace

void store_health::fails(const std::string& store, const void* reporter, trouble what)
{
    std::lock_guard guard(lock_);
    failing_[store][reporter] = std::move(what);
}

void store_health::answers(const std::string& store, const void* reporter)
{
    std::lock_guard guard(lock_);
    const auto known = failing_.find(store);
    if (known == failing_.end())
        return;
    known->second.erase(reporter);
    if (known->second.empty())
        failing_.erase(known);
}

std::map<std::string, store_health::trouble> store_health::failing() const
{
    std::lock_guard guard(lock_);
    std::map<std::string, trouble> all;
    for (const auto& [store, all_who] : failing_)
        all.emplace(store, all_who.begin()->second);
    return all;
}

void store_health::watch(const store_map& stores)
{
    std::lock_guard guard(lock_);
    for (const auto& [name, store] : stores)
        memory_stores_[name].store = store.get();
}

void store_health::look(steady_time now)
{
    std::lock_guard guard(lock_);
    if (now - looked_ < between_looks)
        return;
    looked_ = now;
    for (auto& [name, of] : memory_stores_) {
        const auto stats = of.store->stats();
        if (stats.shared_takes == of.shared_takes)
            continue;
        of.shared_takes = stats.shared_takes;
        of.was_full = now;
        if (of.logged && now - *of.logged < period)
            continue;
        spdlog::warn("store {}: full, with {} keys: new keys share overflow counters, which may refuse too early ({} "
                     "requests since the last such line); raise max_keys",
                     name, stats.keys, of.shared_takes - std::exchange(of.logged_takes, of.shared_takes));
        of.logged = now;
    }
}

std::vector<std::string> store_health::full(steady_time now) const
{
    std::lock_guard guard(lock_);
    std::vector<std::string> names;
    for (const auto& [name, of] : memory_stores_) {
        if (of.was_full && now - *of.was_full < period)
            names.push_back(name);
    }
    return names;
}

} // namespace headgate
