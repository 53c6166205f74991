#include "limiter/memory/seen_set.hpp"

#include <algorithm>

namespace headgate::limiter {

namespace {

// With two buckets of eight to choose from, next to no hash finds both full at this load.
constexpr std::size_t slots_for(std::size_t hashes) { return hashes + hashes / 2; }

} // namespace

seen_set::seen_set(std::size_t most) : slots_((slots_for(most) / bucket_size + 2) * bucket_size) {}

bool seen_set::holds(const slot& s, time_point now, microseconds period)
{
    return s.at != time_point::min() && now - s.at <= period;
}

// Returns the bucket that 32 bits of a hash choose.
std::span<seen_set::slot> seen_set::bucket(std::uint64_t half)
{
    const auto buckets = slots_.size() / bucket_size;
    return std::span(slots_).subspan(static_cast<std::size_t>(half * buckets >> 32) * bucket_size, bucket_size);
}

seen_set::slot* seen_set::find(std::uint64_t hash)
{
    for (const auto half : {hash >> 32, hash & 0xffffffff}) {
        for (auto& s : bucket(half)) {
            if (s.hash == hash && s.at != time_point::min())
                return &s;
        }
    }
    return nullptr;
}

bool seen_set::refresh(std::uint64_t hash, time_point now, microseconds period)
{
    auto* const found = find(hash);
    if (!found || !holds(*found, now, period))
        return false;
    found->at = now;
    return true;
}

bool seen_set::mark(std::uint64_t hash, time_point now, microseconds period)
{
    if (refresh(hash, now, period))
        return true;
    auto* found = find(hash);
    if (!found)
        found = &make_room(hash, now, period);
    *found = {hash, now};
    return false;
}

// Returns a free slot of the emptier bucket, or the slot that was seen the longest ago.
seen_set::slot& seen_set::make_room(std::uint64_t hash, time_point now, microseconds period)
{
    const auto is_free = [&](const slot& s) { return !holds(s, now, period); };
    auto first = bucket(hash >> 32), second = bucket(hash & 0xffffffff);
    if (std::ranges::count_if(second, is_free) > std::ranges::count_if(first, is_free))
        std::swap(first, second);
    if (const auto free = std::ranges::find_if(first, is_free); free != first.end())
        return *free;
    ++forgotten_;
    auto& a = *std::ranges::min_element(first, {}, &slot::at);
    auto& b = *std::ranges::min_element(second, {}, &slot::at);
    return a.at <= b.at ? a : b;
}

} // namespace headgate::limiter
