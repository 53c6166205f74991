// Sliding log: an exact window. A ring of { time, cost } records and the sum of their costs; a record leaves exactly
// one period after its time. Words: [0] head << 32 | size, [1] sum of the costs, then two words per record. Charges of
// the same microsecond share a record. Only meter.cpp and convert.cpp include this.
#pragma once

#include "limiter/core/meter.hpp"

#include <algorithm>

namespace headgate::limiter::sliding_log {

inline constexpr std::size_t header_words = 2;
inline constexpr std::size_t first_records = 4; // room of a new key

template <class State>
class ring
{
public:
    explicit ring(State s) : s_(s) {}

    std::size_t capacity() const { return (s_.size() - header_words) / 2; }
    std::size_t size() const { return s_[0] & 0xffffffffu; }
    std::uint64_t sum() const { return s_[1]; }
    std::int64_t when(std::size_t i) const { return static_cast<std::int64_t>(s_[slot(i)]); }
    std::uint64_t cost(std::size_t i) const { return s_[slot(i) + 1]; }

    void pop_oldest()
    {
        const std::size_t head = (s_[0] >> 32) + 1 == capacity() ? 0 : (s_[0] >> 32) + 1;
        s_[1] -= cost(0);
        s_[0] = static_cast<std::uint64_t>(head) << 32 | (size() - 1);
    }
    // Adds a record. When the ring is full, the newest record takes the cost and the time: the cost it had stays longer
    // than it should, which never admits too much.
    void push(std::int64_t t, std::uint64_t c)
    {
        s_[1] += c;
        if (size() > 0 && (when(size() - 1) >= t || size() == capacity())) {
            s_[slot(size() - 1)] = static_cast<std::uint64_t>(std::max(t, when(size() - 1)));
            s_[slot(size() - 1) + 1] += c;
            return;
        }
        s_[slot(size())] = static_cast<std::uint64_t>(t);
        s_[slot(size()) + 1] = c;
        s_[0] += 1;
    }
    void shift(microseconds by)
    {
        for (std::size_t i = 0; i < size(); ++i)
            s_[slot(i)] = static_cast<std::uint64_t>(std::max<std::int64_t>(0, when(i) + by.count()));
    }
    // Subtracts `by` from record i. Removes the record when nothing is left, so that there are never more records than
    // the limit.
    void reduce(std::size_t i, std::uint64_t by)
    {
        s_[slot(i) + 1] -= by;
        s_[1] -= by;
        if (cost(i) > 0)
            return;
        for (; i + 1 < size(); ++i) {
            s_[slot(i)] = s_[slot(i + 1)];
            s_[slot(i) + 1] = s_[slot(i + 1) + 1];
        }
        s_[0] -= 1;
    }

private:
    std::size_t slot(std::size_t i) const
    {
        const std::size_t at = (s_[0] >> 32) + i;
        return header_words + 2 * (at >= capacity() ? at - capacity() : at);
    }
    State s_;
};

// Returns how many of the oldest records have left the window at `now`.
template <class State>
std::size_t expired(const meter& m, const ring<State>& log, time_point now)
{
    std::size_t n = 0;
    while (n < log.size() && log.when(n) + m.limits.period.count() <= now.time_since_epoch().count())
        ++n;
    return n;
}

inline decision judge(const meter& m, const_state s, time_point now, std::uint64_t cost)
{
    const ring log(s);
    const std::int64_t at = now.time_since_epoch().count(), period = m.limits.period.count();
    const std::size_t gone = expired(m, log, now);
    std::uint64_t used = log.sum();
    for (std::size_t i = 0; i < gone; ++i)
        used -= log.cost(i);
    const std::uint64_t limit = m.limits.count;
    decision d{.admitted = used + cost <= limit, .limit = limit};
    const std::uint64_t after = d.admitted ? used + cost : used;
    d.remaining = after < limit ? limit - after : 0;
    if (d.admitted && cost > 0)
        d.reset_after = m.limits.period;
    if (gone < log.size())
        d.reset_after = std::max(d.reset_after, microseconds{log.when(log.size() - 1) + period - at});
    if (!d.admitted && cost <= limit) {
        // Wait until enough of the oldest records have left.
        for (std::size_t i = gone; i < log.size() && used + cost > limit; ++i) {
            used -= log.cost(i);
            d.retry_after = microseconds{log.when(i) + period - at};
        }
    }
    return d;
}

inline void drop_expired(const meter& m, state s, time_point now)
{
    ring log(s);
    for (auto n = expired(m, log, now); n > 0; --n)
        log.pop_oldest();
}

inline void charge(const meter& m, state s, time_point now, std::uint64_t cost)
{
    drop_expired(m, s, now);
    ring log(s);
    cost = std::min(cost, max_use - log.sum());
    if (cost > 0)
        log.push(now.time_since_epoch().count(), cost);
}

// Keeps the newest requests, refused ones included: a client that keeps sending waits one period from the last request
// that fills the limit.
inline void charge_refused(const meter& m, state s, time_point now, std::uint64_t cost)
{
    drop_expired(m, s, now);
    ring log(s);
    cost = std::min(cost, m.limits.count);
    while (log.size() > 0 && log.sum() + cost > m.limits.count) {
        const auto surplus = log.sum() + cost - m.limits.count;
        if (log.cost(0) <= surplus)
            log.pop_oldest();
        else
            log.reduce(0, surplus);
    }
    if (cost > 0)
        log.push(now.time_since_epoch().count(), cost);
}

inline std::uint64_t give_back(const meter& m, state s, time_point charged_at, time_point now, std::uint64_t cost)
{
    drop_expired(m, s, now);
    ring log(s);
    // Give back to the record that was charged. Records may have been merged, so use the nearest one that is not later.
    std::uint64_t given = 0;
    for (std::size_t i = log.size(); i > 0 && given < cost; --i) {
        if (log.when(i - 1) > charged_at.time_since_epoch().count())
            continue;
        const auto part = std::min(cost - given, log.cost(i - 1));
        log.reduce(i - 1, part);
        given += part;
    }
    return given;
}

} // namespace headgate::limiter::sliding_log
