// The memory of one guard (`new_identities` of a key): which identities were seen, and the counters of the addresses
// that brought new ones. All workers share it. It outlives reloads, as stores do.
#pragma once

#include "config/model.hpp"
#include "limiter/memory/memory_store.hpp"
#include "limiter/memory/seen_set.hpp"
#include "limiter/memory/shard_lock.hpp"
#include "limiter/siphash.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace headgate {

class identity_guard
{
public:
    identity_guard(const config::new_identities_config& config, limiter::time_point now);

    // Follows a reload. The number of identities stays.
    void use(const config::new_identities_config& config) { period_ = config.rule.period.count(); }
    std::size_t max_identities() const { return addresses_.max_keys(); }
    limiter::memory_store& addresses() { return addresses_; }

    // While it has run for less than a period, no identity is new: those that were seen before it started are not
    // known.
    bool is_in_grace(limiter::time_point now) const { return now < grace_ends_; }
    // The hash has a secret of the process, so that no client can choose identities that collide.
    std::uint64_t hash_of(std::string_view identity) const { return limiter::siphash(secret_, 0, identity); }
    // Returns whether the identity was seen within the period before `now`; if so, it is seen again.
    bool is_seen(std::uint64_t hash, limiter::time_point now);
    // Remembers the identity. Returns whether it was seen within the period already.
    bool remember(std::uint64_t hash, limiter::time_point now);
    // Returns how many identities were forgotten before their time, for lack of room.
    std::uint64_t forgotten() const;

private:
    static constexpr std::size_t shard_count = 16;

    struct alignas(64) shard
    {
        explicit shard(std::size_t most) : seen(most) {}
        mutable limiter::shard_lock lock;
        limiter::seen_set seen;
    };
    shard& shard_of(std::uint64_t hash) { return *shards_[hash % shard_count]; }
    limiter::microseconds period() const { return limiter::microseconds{period_.load(std::memory_order_relaxed)}; }

    limiter::hash_secret secret_;
    std::atomic<std::int64_t> period_;
    limiter::time_point grace_ends_;
    limiter::memory_store addresses_;
    std::array<std::unique_ptr<shard>, shard_count> shards_;
};

// By the name of the key.
using guard_map = std::map<std::string, std::shared_ptr<identity_guard>>;

} // namespace headgate
