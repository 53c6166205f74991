#include "limiter/core/meter.hpp"

#include "limiter/core/bucket.hpp"
#include "limiter/core/sliding_log.hpp"
#include "limiter/core/windows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headgate::limiter {

namespace {

// The end of a request in flight cannot be predicted; clients are told to retry after this long.
constexpr microseconds concurrency_hint{1'000'000};

// Any cost above max_count exceeds every limit, so it can be capped: sums then stay within 64 bits.
std::uint64_t bounded(std::uint64_t cost) { return std::min(cost, max_count + 1); }

decision judge_concurrency(const meter& m, const_state s, std::uint64_t cost)
{
    const std::uint64_t in_flight = s[0], limit = m.limits.count;
    decision d{.admitted = in_flight + cost <= limit, .limit = limit};
    const auto after = d.admitted ? in_flight + cost : in_flight;
    d.remaining = after < limit ? limit - after : 0;
    if (!d.admitted && cost <= limit)
        d.retry_after = concurrency_hint;
    return d;
}

} // namespace

meter::meter(rule r) : limits(std::move(r))
{
    if (!limits.is_bucket())
        return;
    const auto period = static_cast<std::uint64_t>(limits.period.count());
    const auto common = std::gcd(limits.count, period);
    ticks_per_us = limits.count / common;
    ticks_per_unit = period / common;
    tolerance = static_cast<wide>(limits.capacity) * ticks_per_unit;
    unit_inverse = ~std::uint64_t{0} / ticks_per_unit;
    narrow = ticks_per_us <= 512 && tolerance >> 61 == 0;
}

std::size_t meter::words() const
{
    switch (limits.kind) {
    case algorithm::sliding_window:
        return 3;
    case algorithm::sliding_log:
        return std::min(max_words(), sliding_log::header_words + 2 * sliding_log::first_records);
    case algorithm::concurrency:
        return 1;
    default:
        return 2;
    }
}

std::size_t meter::max_words() const
{
    return limits.kind == algorithm::sliding_log ? sliding_log::header_words + 2 * limits.count : words();
}

void begin(const meter& m, state s, moment now)
{
    if (m.limits.is_bucket() && m.limits.initial < m.limits.capacity)
        bucket::store(s, bucket::ticks(m, now) + bucket::ticks(m, m.limits.capacity - m.limits.initial));
}

namespace {

decision judge_kind(const meter& m, const_state s, moment now, std::uint64_t cost)
{
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return fixed_window::judge(m, s, now, cost);
    case algorithm::sliding_window:
        return sliding_window::judge(m, s, now, cost);
    case algorithm::sliding_log:
        return sliding_log::judge(m, s, now, cost);
    case algorithm::concurrency:
        return judge_concurrency(m, s, cost);
    default:
        return bucket::judge(m, s, now, cost);
    }
}

} // namespace

decision judge(const meter& m, const_state s, moment now, std::uint64_t cost)
{
    auto decided = judge_kind(m, s, now, bounded(cost));
    if (m.limits.unlimited) {
        decided.admitted = true;
        decided.retry_after = never;
        decided.delay = {};
    }
    return decided;
}

void charge(const meter& m, state s, moment now, std::uint64_t cost)
{
    cost = bounded(cost);
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return fixed_window::charge(m, s, now, cost);
    case algorithm::sliding_window:
        return sliding_window::charge(m, s, now, cost);
    case algorithm::sliding_log:
        return sliding_log::charge(m, s, now, cost);
    case algorithm::concurrency:
        s[0] = std::min(s[0] + cost, max_use);
        return;
    default:
        return bucket::charge(m, s, now, cost);
    }
}

void charge_refused(const meter& m, state s, moment now, std::uint64_t cost)
{
    cost = bounded(cost);
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return fixed_window::charge_refused(m, s, now, cost);
    case algorithm::sliding_window:
        return sliding_window::charge_refused(m, s, now, cost);
    case algorithm::sliding_log:
        return sliding_log::charge_refused(m, s, now, cost);
    case algorithm::concurrency:
        return; // a refused request is not in flight
    default:
        return bucket::charge_refused(m, s, now, cost);
    }
}

std::uint64_t give_back(const meter& m, state s, moment charged_at, moment now, std::uint64_t cost)
{
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return fixed_window::give_back(m, s, charged_at, now, cost);
    case algorithm::sliding_window:
        return sliding_window::give_back(m, s, charged_at, now, cost);
    case algorithm::sliding_log:
        return sliding_log::give_back(m, s, charged_at, now, cost);
    case algorithm::concurrency: {
        const auto given = std::min(cost, s[0]);
        s[0] -= given;
        return given;
    }
    default:
        return bucket::give_back(m, s, now, cost);
    }
}

std::uint64_t grant(const meter& m, state s, moment now, std::uint64_t n)
{
    if (m.limits.kind == algorithm::sliding_window)
        return sliding_window::grant(m, s, now, n);
    return give_back(m, s, now, now, n);
}

void shift(const meter& m, state s, microseconds by)
{
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return fixed_window::shift(s, by);
    case algorithm::sliding_window:
        return sliding_window::shift(s, by);
    case algorithm::sliding_log:
        return sliding_log::ring(s).shift(by);
    case algorithm::concurrency:
        return;
    default:
        return bucket::shift(m, s, by);
    }
}

void rewind(const meter& m, state s, time_point written, moment now)
{
    if (written <= now.time)
        return;
    if (m.limits.follows_wall_clock())
        fixed_window::move_to_window_of(m, s, written, now);
    else if (m.limits.kind == algorithm::sliding_window)
        sliding_window::rewind(m, s, written, now);
    else
        shift(m, s, now.time - written);
}

void follow_wall(const meter& m, state s, microseconds before, moment now)
{
    if (!m.limits.follows_wall_clock())
        return;
    const auto step = now.wall_ahead - before;
    fixed_window::shift(s, -step);
    fixed_window::move_to_window_of(m, s, now.time - step, now);
}

time_point recovered_at(const meter& m, const_state s)
{
    const auto at = [](std::int64_t t) { return time_point{microseconds{t}}; };
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return s[1] > 0 ? at(static_cast<std::int64_t>(s[0])) : time_point{};
    case algorithm::sliding_window: {
        const auto start = static_cast<std::int64_t>(s[0]);
        return s[2] > 0   ? at(start + 2 * m.limits.period.count())
               : s[1] > 0 ? at(start + m.limits.period.count())
                          : at(0);
    }
    case algorithm::sliding_log: {
        const sliding_log::ring log(s);
        return log.size() > 0 ? at(log.when(log.size() - 1) + m.limits.period.count()) : at(0);
    }
    case algorithm::concurrency:
        return s[0] > 0 ? time_point::max() : time_point{};
    default:
        return time_point{bucket::to_us(m, bucket::load(s))};
    }
}

bool log_is_full(const meter& m, const_state s, time_point now)
{
    if (m.limits.kind != algorithm::sliding_log)
        return false;
    const sliding_log::ring log(s);
    return log.size() == log.capacity() && sliding_log::expired(m, log, now) == 0;
}

std::int64_t redis_cell_seconds(microseconds t)
{
    if (t == never)
        return -1;
    const auto ms = t.count() / 1000;
    return ms / 1000 + (ms % 1000 > 0 ? 1 : 0);
}

} // namespace headgate::limiter
