// Converts the counters of a key when its rule changes: what was used under the old rule counts under the new one, and
// no quota is handed out.
#include "limiter/core/bucket.hpp"
#include "limiter/core/meter.hpp"
#include "limiter/core/sliding_log.hpp"
#include "limiter/core/windows.hpp"

namespace headgate::limiter {

namespace {

// An exact amount of use: tokens = parts / per_token.
struct usage
{
    wide parts = 0;
    std::uint64_t per_token = 1;
};

usage used(const meter& m, const_state s, time_point now)
{
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return {fixed_window::is_over(s, now) ? 0 : static_cast<wide>(s[1]), 1};
    case algorithm::sliding_window:
        return {sliding_window::estimate(m, sliding_window::at(m, s, now), now),
                static_cast<std::uint64_t>(m.limits.period.count())};
    case algorithm::sliding_log: {
        const sliding_log::ring log(s);
        wide sum = static_cast<wide>(log.sum());
        for (auto n = sliding_log::expired(m, log, now); n > 0; --n)
            sum -= static_cast<wide>(log.cost(n - 1));
        return {sum, 1};
    }
    case algorithm::concurrency:
        return {static_cast<wide>(s[0]), 1};
    default:
        return {std::max<wide>(0, bucket::load(s) - bucket::ticks(m, now)), m.ticks_per_unit};
    }
}

// Returns ceil(a * b / c), at most `most`, also where a * b does not fit 128 bits.
wide scale_up(wide a, wide b, wide c, wide most)
{
    const wide whole = a / c;
    if (whole > most / std::max<wide>(1, b))
        return most;
    return std::min(most, whole * b + ((a % c) * b + c - 1) / c);
}

bool same_limit(const rule& a, const rule& b)
{
    return a.kind == b.kind && a.count == b.count && a.period == b.period && a.capacity == b.capacity &&
           a.align == b.align && a.calendar == b.calendar;
}

bool same_family(const rule& a, const rule& b) { return a.kind == b.kind || (a.is_bucket() && b.is_bucket()); }

bool same_window(const rule& a, const rule& b)
{
    return a.period == b.period && a.calendar == b.calendar && a.align == b.align;
}

// Copies the newest records, as many as the new limit holds; all of them when the limit is the same. The cost of the
// older ones is dropped, or with carry::all added to the oldest record that is kept.
void copy_log(const meter& from, const_state old, const meter& to, state fresh, time_point now, carry how)
{
    const sliding_log::ring log(old);
    std::size_t first = sliding_log::expired(from, log, now);
    sliding_log::ring out(fresh);
    std::uint64_t kept = 0;
    std::size_t i = log.size();
    if (from.limits.count == to.limits.count && log.size() - first <= out.capacity())
        i = first;
    while (i > first && kept < to.limits.count)
        kept += log.cost(--i);
    if (how == carry::all && i < log.size()) {
        std::uint64_t older = 0;
        for (std::size_t n = first; n < i; ++n)
            older += log.cost(n);
        out.push(log.when(i), log.cost(i) + older);
        for (++i; i < log.size(); ++i)
            out.push(log.when(i), log.cost(i));
        return;
    }
    for (; i < log.size(); ++i) {
        const auto surplus = kept > to.limits.count ? kept - to.limits.count : 0;
        kept -= surplus;
        out.push(log.when(i), log.cost(i) - surplus);
    }
}

} // namespace

void convert(const meter& from, const_state old, const meter& to, state fresh, moment now, carry how)
{
    if (same_limit(from.limits, to.limits))
        how = carry::all; // such as after a restart: debts stay owed
    if (from.limits.kind == algorithm::concurrency || to.limits.kind == algorithm::concurrency) {
        // A request in flight is released when it ends, and holds no token. So only concurrency converts to
        // concurrency.
        if (from.limits.kind == to.limits.kind)
            fresh[0] = old[0];
        else if (to.limits.kind != algorithm::concurrency)
            begin(to, fresh, now);
        return;
    }
    if (from.limits.kind == to.limits.kind && from.limits.kind == algorithm::sliding_log)
        return copy_log(from, old, to, fresh, now, how);
    if (from.limits.kind == to.limits.kind && from.limits.kind == algorithm::sliding_window &&
        from.limits.period == to.limits.period) {
        auto c = sliding_window::at(from, old, now);
        // The previous window is not cut to the new limit: the part of it that has faded would be subtracted twice.
        if (how == carry::up_to_limit)
            c.current = std::min(c.current, to.limits.count);
        return sliding_window::store(fresh, c);
    }

    // Within a family of algorithms the number used is kept; between families the used share of the limit is kept.
    const auto [parts, per_token] = used(from, old, now);
    const wide limit = static_cast<wide>(to.limits.limit());
    const wide most = how == carry::all ? static_cast<wide>(max_use) : limit;
    const wide in_old_units = same_family(from.limits, to.limits)
                                  ? parts
                                  : scale_up(parts, limit, static_cast<wide>(from.limits.limit()), most * per_token);
    if (in_old_units == 0)
        return;
    if (to.limits.is_bucket()) {
        const wide level = scale_up(in_old_units, to.ticks_per_unit, per_token, most * to.ticks_per_unit);
        return bucket::store(fresh, bucket::ticks(to, now) + level);
    }
    const auto count = static_cast<std::uint64_t>(scale_up(in_old_units, 1, per_token, most));
    charge(to, fresh, now, count);
    if (to.limits.kind == algorithm::fixed_window && from.limits.kind == to.limits.kind &&
        same_window(from.limits, to.limits))
        fresh[0] = old[0];
}

} // namespace headgate::limiter
