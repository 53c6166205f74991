#include "gateway/stores/store_health.hpp"

namespace headgate {

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

} // namespace headgate
