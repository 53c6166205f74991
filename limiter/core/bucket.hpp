// Token bucket, leaky bucket and GCRA share one arithmetic. The state is one number per key: the moment at which the
// bucket will be empty (redis-cell calls it the theoretical arrival time). There is no timer, and nothing drifts. Only
// meter.cpp, convert.cpp, settled.cpp and fast_path.hpp include this.
#pragma once

#include "limiter/core/meter.hpp"

#include <algorithm>
#include <cstring>

namespace headgate::limiter::bucket {

inline wide load(const_state s)
{
    wide empty_at;
    std::memcpy(&empty_at, s.data(), sizeof empty_at);
    return empty_at;
}
inline void store(state s, wide empty_at) { std::memcpy(s.data(), &empty_at, sizeof empty_at); }

inline wide ticks(const meter& m, time_point t) { return wide{t.time_since_epoch().count()} * m.ticks_per_us; }
inline wide ticks(const meter& m, std::uint64_t cost) { return static_cast<wide>(cost) * m.ticks_per_unit; }

// Divides a non-negative number. The usual case fits 64 bits, where division is cheap.
inline std::uint64_t divide(wide value, std::uint64_t by)
{
    if (static_cast<std::uint64_t>(value >> 64) == 0)
        return static_cast<std::uint64_t>(value) / by;
    const wide quotient = value / static_cast<wide>(by);
    return quotient > INT64_MAX ? std::uint64_t{INT64_MAX} : static_cast<std::uint64_t>(quotient);
}
// Converts ticks to microseconds. Rounds up, so that a client that waits this long is admitted. Saturates at the
// largest time.
inline microseconds to_us(const meter& m, wide t)
{
    if (m.ticks_per_us == 1 && static_cast<std::uint64_t>(t >> 63) == 0)
        return microseconds{static_cast<std::int64_t>(t)};
    const auto us = divide(t + (m.ticks_per_us - 1), m.ticks_per_us);
    return microseconds{static_cast<std::int64_t>(std::min<std::uint64_t>(us, INT64_MAX))};
}

// Returns how many whole units of cost fit in `t` ticks.
inline std::uint64_t units_in(const meter& m, wide t) { return divide(t, m.ticks_per_unit); }
inline std::uint64_t units_in(const meter& m, std::int64_t t)
{
    // unit_inverse is at most one too small and `t` is below 2^63, so the quotient is exact or one too small.
    const auto ticks = static_cast<std::uint64_t>(t);
    const auto units = static_cast<std::uint64_t>(static_cast<unsigned_wide>(ticks) * m.unit_inverse >> 64);
    return units + (ticks - units * m.ticks_per_unit >= m.ticks_per_unit);
}
inline microseconds to_us(const meter& m, std::int64_t t)
{
    const auto per_us = static_cast<std::int64_t>(m.ticks_per_us);
    return microseconds{per_us == 1 ? t : (t + per_us - 1) / per_us};
}

// Judges `cost` with 64-bit or 128-bit ticks.
// REQUIRES: Ticks holds every sum of the arguments and the tolerance.
template <class Ticks>
decision judge(const meter& m, Ticks at, Ticks stored, std::uint64_t cost)
{
    const auto of = [&m](std::uint64_t units) {
        return static_cast<Ticks>(units) * static_cast<Ticks>(m.ticks_per_unit);
    };
    const Ticks tolerance = static_cast<Ticks>(m.tolerance);
    const Ticks empty_at = std::max(at, stored);
    const Ticks charged = empty_at + of(cost);
    const Ticks earliest = charged - tolerance; // the first moment at which this cost fits
    decision d{.admitted = earliest <= at, .limit = m.limits.capacity};
    const Ticks level = (d.admitted ? charged : empty_at) - at;
    if (level < tolerance)
        d.remaining = units_in(m, tolerance - level);
    d.reset_after = to_us(m, level);
    if (!d.admitted) {
        d.retry_after = cost > m.limits.capacity ? never : to_us(m, earliest - at);
    } else if (m.limits.delay_after) {
        // A shaping rule delays a request until the bucket has drained to the part that passes without delay.
        const Ticks before = empty_at - at - of(std::min(*m.limits.delay_after, m.limits.capacity));
        if (cost > 0 && before > 0)
            d.delay = to_us(m, before);
    }
    return d;
}

// Returns whether the state, the time and the cost fit 64 bits, which halves the work. Nearly all do.
inline bool fits_narrow(const meter& m, const_state s, time_point now, std::uint64_t cost)
{
    return m.narrow && s[1] == 0 && s[0] >> 62 == 0 && now.time_since_epoch().count() >> 52 == 0 &&
           cost <= m.limits.capacity;
}
inline std::int64_t narrow_ticks(const meter& m, time_point t)
{
    return t.time_since_epoch().count() * static_cast<std::int64_t>(m.ticks_per_us);
}

inline decision judge(const meter& m, const_state s, time_point now, std::uint64_t cost)
{
    if (fits_narrow(m, s, now, cost))
        return judge<std::int64_t>(m, narrow_ticks(m, now), static_cast<std::int64_t>(s[0]), cost);
    return judge<wide>(m, ticks(m, now), load(s), cost);
}

inline void charge(const meter& m, state s, time_point now, std::uint64_t cost)
{
    store(s, std::max(ticks(m, now), load(s)) + ticks(m, cost));
}

inline void charge_refused(const meter& m, state s, time_point now, std::uint64_t cost)
{
    const wide at = ticks(m, now);
    const wide empty_at = std::max(at, load(s));
    store(s, std::max(empty_at, std::min(empty_at + ticks(m, cost), at + m.tolerance)));
}

inline void shift(const meter& m, state s, microseconds by)
{
    store(s, std::max<wide>(0, load(s) + wide{by.count()} * m.ticks_per_us));
}

inline std::uint64_t give_back(const meter& m, state s, time_point now, std::uint64_t cost)
{
    const wide at = ticks(m, now);
    const wide empty_at = load(s);
    if (empty_at <= at)
        return 0;
    const std::uint64_t used = units_in(m, empty_at - at + (m.ticks_per_unit - 1));
    store(s, std::max(at, empty_at - ticks(m, cost)));
    return std::min(cost, used);
}

} // namespace headgate::limiter::bucket
