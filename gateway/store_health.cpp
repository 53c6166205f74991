#include "gateway/store_health.hpp"

namespace headgate {

void store_health::fails(const std::string& store, unsigned worker, trouble what)
{
    std::lock_guard guard(lock_);
    failing_[store][worker] = std::move(what);
}

void store_health::answers(const std::string& store, unsigned worker)
{
    std::lock_guard guard(lock_);
    const auto known = failing_.find(store);
    if (known == failing_.end())
        return;
    known->second.erase(worker);
    if (known->second.empty())
        failing_.erase(known);
}

std::map<std::string, store_health::trouble> store_health::failing() const
{
    std::lock_guard guard(lock_);
    std::map<std::string, trouble> all;
    for (const auto& [store, workers] : failing_)
        all.emplace(store, workers.begin()->second);
    return all;
}

} // namespace headgate
