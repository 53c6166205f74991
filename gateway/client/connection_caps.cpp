#include "gateway/client/connection_caps.hpp"

#include "gateway/http/client_address.hpp"

namespace headgate {

void connection_caps::use(std::uint64_t in_all, std::uint64_t an_address)
{
    most_.store(in_all, std::memory_order_relaxed);
    most_an_address_.store(an_address, std::memory_order_relaxed);
}

bool connection_caps::enter(const http::ip_address& from)
{
    if (open_.fetch_add(1, std::memory_order_relaxed) >= most_.load(std::memory_order_relaxed)) {
        open_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    const auto most = most_an_address_.load(std::memory_order_relaxed);
    std::lock_guard guard(lock_);
    auto& count = by_address_[http::aggregate(from)];
    if (most != 0 && count >= most) {
        open_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    ++count;
    return true;
}

void connection_caps::leave(const http::ip_address& from)
{
    open_.fetch_sub(1, std::memory_order_relaxed);
    std::lock_guard guard(lock_);
    const auto found = by_address_.find(http::aggregate(from));
    if (found != by_address_.end() && --found->second == 0)
        by_address_.erase(found);
}

} // namespace headgate
