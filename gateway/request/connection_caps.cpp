#include "gateway/request/connection_caps.hpp"

#include "gateway/http/client_address.hpp"

namespace headgate {

bool connection_caps::enter(const http::ip_address& from)
{
    if (open_.fetch_add(1, std::memory_order_relaxed) >= most_) {
        open_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    if (most_an_address_ == 0)
        return true;
    std::lock_guard guard(lock_);
    auto& count = by_address_[http::aggregate(from)];
    if (count >= most_an_address_) {
        open_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    ++count;
    return true;
}

void connection_caps::leave(const http::ip_address& from)
{
    open_.fetch_sub(1, std::memory_order_relaxed);
    if (most_an_address_ == 0)
        return;
    std::lock_guard guard(lock_);
    const auto found = by_address_.find(http::aggregate(from));
    if (found != by_address_.end() && --found->second == 0)
        by_address_.erase(found);
}

} // namespace headgate
