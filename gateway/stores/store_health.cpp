#include "gateway/stores/store_health.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace headgate {

namespace {

constexpr std::chrono::seconds between_looks{1};
constexpr std::chrono::minutes period{1}; // of lines in the log, and how long /readyz warns

} // namespace

bool store_health::fails(const std::string& store, const void* reporter, trouble what)
{
    std::lock_guard guard(lock_);
    auto& of = stores_[store];
    auto& mine = of.failing[reporter];
    if (what.severity == 0)
        what.severity = mine.severity; // error replies, on top of what the connections said
    mine = std::move(what);
    unsigned worst = 0;
    for (const auto& [who, each] : of.failing)
        worst = std::max(worst, each.severity);
    // Workers that are at different steps of the same outage, one still connecting and one that has failed, are no
    // change.
    const bool is_better = of.logged >= outage && worst < outage && worst > 0;
    const bool is_worse = worst > of.logged;
    if (is_better || is_worse || worst < outage)
        of.logged = worst;
    if (is_better || is_worse)
        of.connected.clear();
    return is_better || is_worse;
}

bool store_health::answers(const std::string& store, const void* reporter, const std::string& server)
{
    std::lock_guard guard(lock_);
    auto& of = stores_[store];
    of.failing.erase(reporter);
    if (!of.failing.empty())
        return false;
    of.logged = 0;
    return std::exchange(of.connected, server) != server;
}

void store_health::leave(const std::string& store, const void* reporter)
{
    std::lock_guard guard(lock_);
    stores_[store].failing.erase(reporter);
}

std::map<std::string, store_health::trouble> store_health::failing() const
{
    std::lock_guard guard(lock_);
    std::map<std::string, trouble> all;
    for (const auto& [store, of] : stores_) {
        if (!of.failing.empty())
            all.emplace(store, of.failing.begin()->second);
    }
    return all;
}

std::optional<std::uint64_t> store_health::count_failures(const std::string& store, std::uint64_t more, steady_time now)
{
    std::lock_guard guard(lock_);
    auto& of = stores_[store];
    of.failures += more;
    if (now - of.counted < std::chrono::seconds{1})
        return std::nullopt;
    of.counted = now;
    return std::exchange(of.failures, 0);
}

bool store_health::may_tell_of_lost_scripts(const std::string& store, steady_time now)
{
    std::lock_guard guard(lock_);
    auto& told = stores_[store].told;
    if (now - told < std::chrono::seconds{5})
        return false;
    told = now;
    return true;
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
