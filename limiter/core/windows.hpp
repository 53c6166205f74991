// Fixed window and sliding window. Included by meter.cpp, convert.cpp, settled.cpp and fast_path.hpp only.
//
// Fixed window: { end, used }. With the end in the state, most requests need one comparison; the calendar is
// computed only when a new window begins. Sliding window of two counters: { start, previous, current }, estimate =
// previous x (1 - elapsed/period) + current, compared without dividing. The first window of a key that has recovered
// begins with the clock, and the others follow it. They move when the state is shifted.
#pragma once

#include "limiter/core/calendar.hpp"
#include "limiter/core/meter.hpp"

#include <algorithm>

namespace headgate::limiter {

inline std::int64_t us(time_point t) { return t.time_since_epoch().count(); }

namespace fixed_window {

inline bool is_over(const_state s, time_point now) { return us(now) >= static_cast<std::int64_t>(s[0]); }

// Returns how far the clock by which windows begin is ahead of the time in the state.
inline microseconds ahead(const meter& m, moment t)
{
    return m.limits.follows_wall_clock() ? t.wall_ahead : microseconds{0};
}
inline time_point end_at(const meter& m, moment now)
{
    return window_end(m.limits, now.time + ahead(m, now)) - ahead(m, now);
}

inline decision judge(const meter& m, const_state s, moment now, std::uint64_t cost)
{
    const bool fresh = is_over(s, now);
    const std::uint64_t used = fresh ? 0 : s[1];
    const std::uint64_t limit = m.limits.count;
    decision d{.admitted = used + cost <= limit, .limit = limit};
    const std::uint64_t after = d.admitted ? used + cost : used;
    d.remaining = after < limit ? limit - after : 0;
    if (after > 0 || !d.admitted) {
        const auto end = fresh ? end_at(m, now) : time_point{microseconds{static_cast<std::int64_t>(s[0])}};
        if (after > 0)
            d.reset_after = end - now.time;
        if (!d.admitted && cost <= limit)
            d.retry_after = end - now.time;
    }
    return d;
}

inline void charge(const meter& m, state s, moment now, std::uint64_t cost)
{
    if (cost == 0)
        return;
    if (is_over(s, now)) {
        s[0] = static_cast<std::uint64_t>(us(end_at(m, now)));
        s[1] = 0;
    }
    s[1] = std::min(s[1] + cost, max_use);
}

inline void charge_refused(const meter& m, state s, moment now, std::uint64_t cost)
{
    // Use beyond the limit, from a correction, stays.
    const auto used = is_over(s, now) ? 0 : s[1];
    fixed_window::charge(m, s, now, used < m.limits.count ? std::min(cost, m.limits.count - used) : 0);
}

inline std::uint64_t give_back(const meter& m, state s, moment charged_at, moment now, std::uint64_t cost)
{
    // A charge of a window that has ended no longer counts.
    const auto charged_until = end_at(m, charged_at) + ahead(m, charged_at) - ahead(m, now);
    if (is_over(s, now) || us(charged_until) < static_cast<std::int64_t>(s[0]))
        return 0;
    const auto given = std::min(cost, s[1]);
    s[1] -= given;
    if (s[1] == 0)
        s[0] = 0; // unused: the next request may begin a new window
    return given;
}

inline void shift(state s, microseconds by)
{
    const auto end = static_cast<std::int64_t>(s[0]) + by.count();
    s[0] = s[1] > 0 && end > 0 ? static_cast<std::uint64_t>(end) : 0;
}

// Counts the use of a later window in the one that runs now. A window that was over at `before` stays over.
inline void move_to_window_of(const meter& m, state s, time_point before, moment now)
{
    if (is_over(s, before))
        s[0] = s[1] = 0;
    else if (!is_over(s, now))
        s[0] = static_cast<std::uint64_t>(us(end_at(m, now)));
}

} // namespace fixed_window

namespace sliding_window {

struct counters
{
    std::int64_t start = 0;
    std::uint64_t previous = 0, current = 0;
};

inline std::int64_t period(const meter& m) { return m.limits.period.count(); }

// Returns the counters at `now`.
inline counters at(const meter& m, const_state s, time_point now)
{
    counters c{static_cast<std::int64_t>(s[0]), s[1], s[2]};
    const auto passed = us(now) - c.start;
    if (passed >= period(m))
        c = {c.start + period(m), passed < 2 * period(m) ? c.current : 0, 0};
    if (c.previous == 0 && c.current == 0)
        c.start = us(now) - us(now) % period(m);
    return c;
}
inline void store(state s, const counters& c)
{
    s[0] = static_cast<std::uint64_t>(c.start);
    s[1] = c.previous;
    s[2] = c.current;
}
inline void shift(state s, microseconds by)
{
    const auto start = static_cast<std::int64_t>(s[0]) + by.count();
    s[0] = (s[1] > 0 || s[2] > 0) && start > 0 ? static_cast<std::uint64_t>(start) : 0;
}
// See limiter::rewind.
inline void rewind(const meter& m, state s, time_point written, time_point now)
{
    store(s, at(m, s, written));
    shift(s, now - written);
}
inline std::int64_t elapsed(const counters& c, time_point now) { return std::max<std::int64_t>(0, us(now) - c.start); }

// Returns the estimate times the period, which is a whole number.
inline wide estimate(const meter& m, const counters& c, time_point now)
{
    return static_cast<wide>(c.previous) * (period(m) - elapsed(c, now)) + static_cast<wide>(c.current) * period(m);
}

// Returns how far into a window the use `counted` of the previous window has faded to `room`.
inline std::int64_t fades_at(const meter& m, std::uint64_t counted, std::uint64_t room)
{
    return period(m) - static_cast<std::int64_t>(static_cast<wide>(room) * period(m) / static_cast<wide>(counted));
}

inline microseconds wait(const meter& m, const counters& c, time_point now, std::uint64_t cost)
{
    const std::uint64_t limit = m.limits.count;
    if (cost > limit)
        return never;
    if (c.current + cost <= limit) // only the previous window is in the way
        return microseconds{c.start + fades_at(m, c.previous, limit - c.current - cost) - us(now)};
    return microseconds{c.start + period(m) + fades_at(m, c.current, limit - cost) - us(now)};
}

inline decision judge(const meter& m, const_state s, time_point now, std::uint64_t cost)
{
    auto c = at(m, s, now);
    const wide limit = static_cast<wide>(m.limits.count) * period(m);
    decision d{.limit = m.limits.count};
    d.admitted = estimate(m, c, now) + static_cast<wide>(cost) * period(m) <= limit;
    if (!d.admitted)
        d.retry_after = wait(m, c, now, cost);
    else
        c.current += cost;
    const wide left = limit - estimate(m, c, now);
    d.remaining = left > 0 ? static_cast<std::uint64_t>(left / period(m)) : 0;
    if (c.current > 0)
        d.reset_after = microseconds{c.start + 2 * period(m) - us(now)};
    else if (c.previous > 0)
        d.reset_after = microseconds{c.start + period(m) - us(now)};
    return d;
}

inline void charge(const meter& m, state s, time_point now, std::uint64_t cost)
{
    auto c = at(m, s, now);
    c.current = std::min(c.current + cost, max_use);
    store(s, c);
}

inline void charge_refused(const meter& m, state s, time_point now, std::uint64_t cost)
{
    auto c = at(m, s, now);
    c.current = std::max(c.current, std::min(c.current + cost, m.limits.count));
    store(s, c);
}

inline std::uint64_t give_back(const meter& m, state s, time_point charged_at, time_point now, std::uint64_t cost)
{
    auto c = at(m, s, now);
    auto& counter = us(charged_at) >= c.start ? c.current : c.previous;
    if (us(charged_at) < c.start - period(m))
        return 0;
    const auto given = std::min(cost, counter);
    counter -= given;
    store(s, c);
    return given;
}

// Gives back from the current window first, then from what still counts of the previous one.
inline std::uint64_t grant(const meter& m, state s, time_point now, std::uint64_t n)
{
    auto c = at(m, s, now);
    const auto from_current = std::min(n, c.current);
    c.current -= from_current;
    const wide counts = period(m) - elapsed(c, now); // weight of the previous window, in parts of the period
    const wide still = static_cast<wide>(c.previous) * counts;
    const wide freed = std::min(static_cast<wide>(n - from_current) * period(m), still);
    c.previous -= static_cast<std::uint64_t>((freed + counts - 1) / counts);
    store(s, c);
    return from_current + static_cast<std::uint64_t>((freed + period(m) - 1) / period(m));
}

} // namespace sliding_window

} // namespace headgate::limiter
