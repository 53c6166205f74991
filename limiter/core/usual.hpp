// The usual requests, admitted in one look, inline: by a bucket whose numbers fit 64 bits, by a fixed window that is
// not over. Charging them writes one word. The same arithmetic as in bucket.hpp and windows.hpp, less every case that
// is not this one; the properties drive both.
#pragma once

#include "limiter/core/bucket.hpp"
#include "limiter/core/windows.hpp"

#include <algorithm>
#include <new>

namespace headgate::limiter {

// What charging will write, once every other rule has admitted too.
struct pending_charge
{
    std::uint64_t* word;
    std::uint64_t value;
};

// What judge() says of a usual request that is admitted; false of any other, and nothing is said then. `said` is made
// in its place: copying what was just written would wait for the stores.
inline bool admit_usual(const meter& m, std::uint64_t* s, time_point now, std::uint64_t cost, decision& said,
                        pending_charge& charge)
{
    if (m.limits.kind == algorithm::fixed_window) {
        const auto end = static_cast<std::int64_t>(s[0]);
        const auto used = s[1] + cost;
        if (us(now) >= end || cost > max_count || used > m.limits.count)
            return false;
        new (&said) decision{.limit = m.limits.count,
                             .remaining = m.limits.count - used,
                             .reset_after = microseconds{used > 0 ? end - us(now) : 0}};
        charge = {s + 1, used};
        return true;
    }
    if (!bucket::fits_narrow(m, {s, 2}, now, cost) || m.limits.delay_after)
        return false;
    const auto at = bucket::narrow_ticks(m, now);
    const auto empty_at =
        std::max(at, static_cast<std::int64_t>(s[0])) + static_cast<std::int64_t>(cost * m.ticks_a_unit);
    const auto level = empty_at - at, capacity = static_cast<std::int64_t>(m.tolerance);
    if (level > capacity)
        return false;
    new (&said) decision{.limit = m.limits.capacity,
                         .remaining = bucket::units_in(m, capacity - level),
                         .reset_after = bucket::to_us(m, level)};
    charge = {s, static_cast<std::uint64_t>(empty_at)};
    return true;
}

} // namespace headgate::limiter
