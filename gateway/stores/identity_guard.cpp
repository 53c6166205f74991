#include "gateway/stores/identity_guard.hpp"

#include <random>

namespace headgate {

namespace {

limiter::hash_secret new_secret()
{
    std::random_device device;
    const auto word = [&device] { return std::uint64_t{device()} << 32 | device(); };
    return {word(), word()};
}

} // namespace

identity_guard::identity_guard(const config::new_identities_config& config, limiter::time_point now)
    : secret_(new_secret()), period_(config.rule.period.count()), grace_ends_(now + config.rule.period),
      addresses_(config.max_identities)
{
    // Not used quite evenly either: with a little more room, none is full before the whole is.
    for (auto& each : shards_)
        each = std::make_unique<shard>(config.max_identities / shard_count + config.max_identities / 256 + 16);
}

bool identity_guard::is_seen(std::uint64_t hash, limiter::time_point now)
{
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    return in.seen.refresh(hash, now, period());
}

bool identity_guard::remember(std::uint64_t hash, limiter::time_point now)
{
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    return in.seen.mark(hash, now, period());
}

std::uint64_t identity_guard::forgotten() const
{
    std::uint64_t sum = 0;
    for (const auto& each : shards_) {
        std::lock_guard guard(each->lock);
        sum += each->seen.forgotten();
    }
    return sum;
}

} // namespace headgate
