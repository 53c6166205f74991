// How many clients a listener has, in all and from one address, over all workers. Touched when a connection opens and
// when it closes, never by a request.
#pragma once

#include "gateway/http/ip_address.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace headgate {

class connection_caps
{
public:
    // 0 for `an_address`: no cap.
    connection_caps(std::uint64_t in_all, std::uint64_t an_address) : most_(in_all), most_an_address_(an_address) {}

    // Changes the caps. Connections that are open stay, and count.
    void use(std::uint64_t in_all, std::uint64_t an_address);

    // False: over a cap; nothing was counted. IPv6 clients are counted by their /64, as limits are.
    bool enter(const http::ip_address& from);
    void leave(const http::ip_address& from);
    std::uint64_t open() const { return open_.load(std::memory_order_relaxed); }

private:
    struct hash
    {
        std::size_t operator()(const http::ip_address& a) const
        {
            return static_cast<std::size_t>((a.high ^ (a.low * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu);
        }
    };
    std::atomic<std::uint64_t> most_;
    std::atomic<std::uint64_t> most_an_address_;
    std::atomic<std::uint64_t> open_{0};
    std::mutex lock_;
    // Also without a cap, because a reload may set one.
    boost::unordered_flat_map<http::ip_address, std::uint64_t, hash> by_address_;
};

} // namespace headgate
