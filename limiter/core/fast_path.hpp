// The fast path: admits the most frequent requests, inline. It handles buckets whose numbers fit 64 bits and fixed
// windows that have not ended; charging them writes one word. The arithmetic is that of bucket.hpp and windows.hpp
// without the other cases; tests compare the two.
#pragma once

#include "limiter/core/bucket.hpp"
#include "limiter/core/windows.hpp"

#include <algorithm>
#include <new>

namespace headgate::limiter {

// The word that charging will write, once every other rule has admitted too.
struct pending_charge
{
    std::uint64_t* word;
    std::uint64_t value;
};

// Decides as judge() does when the fast path applies and the rule admits. Otherwise returns false and writes nothing.
// `decided` is constructed in place: copying a value that was just written would wait for its stores.
inline bool admit_fast(const meter& m, std::uint64_t* s, time_point now, std::uint64_t cost, decision& decided,
                       pending_charge& charge)
{
    if (m.limits.kind == algorithm::fixed_window) {
        const auto end = static_cast<std::int64_t>(s[0]);
        const auto used = s[1] + cost;
        if (us(now) >= end || cost > max_count || used > m.limits.count)
            return false;
        new (&decided) decision{.limit = m.limits.count,
                                .remaining = m.limits.count - used,
                                .reset_after = microseconds{used > 0 ? end - us(now) : 0}};
        charge = {s + 1, used};
        return true;
    }
    if (!bucket::fits_narrow(m, {s, 2}, now, cost) || m.limits.delay_after)
        return false;
    const auto at = bucket::narrow_ticks(m, now);
    const auto empty_at =
        std::max(at, static_cast<std::int64_t>(s[0])) + static_cast<std::int64_t>(cost * m.ticks_per_unit);
    const auto level = empty_at - at, capacity = static_cast<std::int64_t>(m.tolerance);
    if (level > capacity)
        return false;
    new (&decided) decision{.limit = m.limits.capacity,
                            .remaining = bucket::units_in(m, capacity - level),
                            .reset_after = bucket::to_us(m, level)};
    charge = {s, static_cast<std::uint64_t>(empty_at)};
    return true;
}

} // namespace headgate::limiter
