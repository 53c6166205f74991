// Makers of rules for tests, and one key of a meter, without a store.
#pragma once

#include "limiter/core/meter.hpp"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <vector>

namespace headgate::limiter {

inline std::ostream& operator<<(std::ostream& out, const decision& d)
{
    return out << (d.admitted ? "admitted" : "refused") << " limit " << d.limit << " remaining " << d.remaining
               << " retry " << d.retry_after.count() << " reset " << d.reset_after.count() << " delay "
               << d.delay.count();
}

} // namespace headgate::limiter

namespace headgate::testing {

using namespace limiter;
using namespace std::chrono_literals;

// The start of a second, a minute and an hour, but of no longer window.
inline constexpr time_point start{std::chrono::hours{24 * 365 * 50 + 7}};

inline rule bucket_rule(algorithm kind, std::uint64_t count, microseconds period, std::uint64_t capacity)
{
    rule r;
    r.name = "bucket";
    r.kind = kind;
    r.count = count;
    r.period = period;
    r.capacity = r.initial = capacity;
    return r;
}
inline rule token_bucket(std::uint64_t count, microseconds period, std::uint64_t burst)
{
    return bucket_rule(algorithm::token_bucket, count, period, burst);
}
// nginx and redis-cell call `burst` what passes in addition to the first request.
inline rule leaky_bucket(std::uint64_t count, microseconds period, std::uint64_t burst)
{
    return bucket_rule(algorithm::leaky_bucket, count, period, burst + 1);
}
inline rule gcra(std::uint64_t max_burst, std::uint64_t count, microseconds period)
{
    return bucket_rule(algorithm::gcra, count, period, max_burst + 1);
}
inline rule window(algorithm kind, std::uint64_t count, microseconds period, window_align align = window_align::clock)
{
    rule r;
    r.name = "window";
    r.kind = kind;
    r.count = count;
    r.period = period;
    r.align = align;
    return r;
}
inline rule fixed_window(std::uint64_t count, microseconds period, window_align align = window_align::clock)
{
    return window(algorithm::fixed_window, count, period, align);
}
inline rule sliding_window(std::uint64_t count, microseconds period)
{
    return window(algorithm::sliding_window, count, period);
}
inline rule sliding_log(std::uint64_t count, microseconds period)
{
    return window(algorithm::sliding_log, count, period);
}
inline rule concurrency(std::uint64_t count) { return window(algorithm::concurrency, count, 0us); }
inline rule named(std::string name, rule r)
{
    r.name = std::move(name);
    return r;
}

// One key of one rule, as an unbounded store would keep it.
struct single_key
{
    explicit single_key(rule r, time_point first = start) : meter(std::move(r)), words(meter.max_words())
    {
        begin(meter, words, first);
    }

    decision look(time_point now, std::uint64_t cost = 0) const { return judge(meter, words, now, cost); }
    decision take(time_point now, std::uint64_t cost = 1)
    {
        const auto decided = look(now, cost);
        if (decided.admitted)
            charge(meter, words, now, cost);
        return decided;
    }
    // Takes n times. Returns how many were admitted.
    int takes(int n, time_point now, std::uint64_t cost = 1)
    {
        int admitted = 0;
        for (int i = 0; i < n; ++i)
            admitted += take(now, cost).admitted ? 1 : 0;
        return admitted;
    }
    std::uint64_t give_back(time_point charged_at, time_point now, std::uint64_t cost = 1)
    {
        return limiter::give_back(meter, words, charged_at, now, cost);
    }
    void refuse(time_point now, std::uint64_t cost = 1) { charge_refused(meter, words, now, cost); }
    single_key converted(rule r, time_point now) const
    {
        single_key to(std::move(r), now);
        std::fill(to.words.begin(), to.words.end(), 0);
        convert(meter, words, to.meter, to.words, now);
        return to;
    }

    limiter::meter meter;
    std::vector<std::uint64_t> words;
};

} // namespace headgate::testing
