// Token bucket, leaky bucket and GCRA are one arithmetic: the moment at which the bucket will be empty again
// (redis-cell's "theoretical arrival time"). One number a key, no timer, no drift. Only meter.cpp and usual.hpp include
// this.
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

inline wide ticks(const meter& m, time_point t) { return wide{t.time_since_epoch().count()} * m.ticks_a_us; }
inline wide ticks(const meter& m, std::uint64_t cost) { return static_cast<wide>(cost) * m.ticks_a_unit; }

// Division of a non-negative number, quick where 64 bits are enough, as they nearly always are.
inline std::uint64_t divide(wide value, std::uint64_t by)
{
    if (static_cast<std::uint64_t>(value >> 64) == 0)
        return static_cast<std::uint64_t>(value) / by;
    const wide quotient = value / static_cast<wide>(by);
    return quotient > INT64_MAX ? std::uint64_t{INT64_MAX} : static_cast<std::uint64_t>(quotient);
}
// Rounded up: a client that waits this long must pass. What is farther away than time goes ends where time does.
inline microseconds to_us(const meter& m, wide t)
{
    if (m.ticks_a_us == 1 && static_cast<std::uint64_t>(t >> 63) == 0)
        return microseconds{static_cast<std::int64_t>(t)};
    const auto us = divide(t + (m.ticks_a_us - 1), m.ticks_a_us);
    return microseconds{static_cast<std::int64_t>(std::min<std::uint64_t>(us, INT64_MAX))};
}

// Whole units in some ticks.
inline std::uint64_t units_in(const meter& m, wide t) { return divide(t, m.ticks_a_unit); }
inline std::uint64_t units_in(const meter& m, std::int64_t t)
{
    // The inverse is too small by one at the most and `t` below 2^63: the quotient is right, or one short.
    const auto ticks = static_cast<std::uint64_t>(t);
    const auto units = static_cast<std::uint64_t>(static_cast<unsigned_wide>(ticks) * m.unit_inverse >> 64);
    return units + (ticks - units * m.ticks_a_unit >= m.ticks_a_unit);
}
inline microseconds to_us(const meter& m, std::int64_t t)
{
    const auto a_us = static_cast<std::int64_t>(m.ticks_a_us);
    return microseconds{a_us == 1 ? t : (t + a_us - 1) / a_us};
}

// One text for two widths of number: Ticks holds every sum of the three arguments and the tolerance.
template <class Ticks>
decision judge(const meter& m, Ticks at, Ticks stored, std::uint64_t cost)
{
    const auto of = [&m](std::uint64_t units) {
        return static_cast<Ticks>(units) * static_cast<Ticks>(m.ticks_a_unit);
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
        // The shaper holds a request until what came before it has drained down to the part that may pass at once.
        const Ticks before = empty_at - at - of(std::min(*m.limits.delay_after, m.limits.capacity));
        if (cost > 0 && before > 0)
            d.delay = to_us(m, before);
    }
    return d;
}

// Nearly every rule, moment and cost fits 64 bits: half the work. Only buckets are narrow.
inline bool fits_narrow(const meter& m, const_state s, time_point now, std::uint64_t cost)
{
    return m.narrow && s[1] == 0 && s[0] >> 62 == 0 && now.time_since_epoch().count() >> 52 == 0 &&
           cost <= m.limits.capacity;
}
inline std::int64_t narrow_ticks(const meter& m, time_point t)
{
    return t.time_since_epoch().count() * static_cast<std::int64_t>(m.ticks_a_us);
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

inline std::uint64_t give_back(const meter& m, state s, time_point now, std::uint64_t cost)
{
    const wide at = ticks(m, now);
    const wide empty_at = load(s);
    if (empty_at <= at)
        return 0;
    const std::uint64_t used = units_in(m, empty_at - at + (m.ticks_a_unit - 1));
    store(s, std::max(at, empty_at - ticks(m, cost)));
    return std::min(cost, used);
}

} // namespace headgate::limiter::bucket
