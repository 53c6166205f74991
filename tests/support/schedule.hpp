// Random rules and random schedules of requests. A step is abstract ("just before the interval ends, all that remains")
// and made concrete by the rule it runs on, so that edge cases are frequent and failures shrink well.
#pragma once

#include "tests/support/rules.hpp"

#include <rapidcheck.h>

#include <cstdlib>
#include <ostream>
#include <vector>

namespace headgate::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// The number of cases per property, unless RC_PARAMS sets it. rapidcheck reads it when it first runs.
inline const int tries = setenv("RC_PARAMS", sanitized ? "max_success=60" : "max_success=500", 0);

struct step
{
    int pace = 0; // the pause after the step before
    std::uint32_t pace_by = 0;
    int size = 0; // the cost
    std::uint32_t size_by = 0;
    int act = 0;
};
inline void showValue(const step& s, std::ostream& out)
{
    out << "{pace " << s.pace << '/' << s.pace_by << " size " << s.size << '/' << s.size_by << " act " << s.act << '}';
}
template <class T>
rc::Gen<T> full_size(rc::Gen<T> gen)
{
    return rc::gen::resize(rc::kNominalSize, std::move(gen));
}
template <class T>
T in_range(T from, T to)
{
    return *full_size(rc::gen::inRange<T>(from, to));
}
inline rc::Gen<step> any_step()
{
    // Uses the full size from the start: rapidcheck begins with small numbers, which would miss the edge cases.
    return full_size(rc::gen::build<step>(rc::gen::set(&step::pace, rc::gen::inRange(0, 10)),
                                          rc::gen::set(&step::pace_by, rc::gen::arbitrary<std::uint32_t>()),
                                          rc::gen::set(&step::size, rc::gen::inRange(0, 12)),
                                          rc::gen::set(&step::size_by, rc::gen::arbitrary<std::uint32_t>()),
                                          rc::gen::set(&step::act, rc::gen::inRange(0, 10))));
}
inline std::vector<step> any_schedule(int most = 40)
{
    return *rc::gen::container<std::vector<step>>(static_cast<std::size_t>(in_range(1, most + 1)), any_step());
}

inline microseconds pause_before(const step& s, const rule& r, microseconds last_wait)
{
    const auto period = std::max<std::int64_t>(1, r.period.count());
    const auto unit =
        std::max<std::int64_t>(1, period / static_cast<std::int64_t>(std::max<std::uint64_t>(1, r.count)));
    const auto some = [&](std::int64_t most) { return static_cast<std::int64_t>(s.pace_by) % (most + 1); };
    switch (s.pace) {
    case 0:
    case 1:
        return microseconds{0};
    case 2:
        return microseconds{1};
    case 3:
        return microseconds{some(unit)};
    case 4:
        return microseconds{unit + some(2) - 1};
    case 5:
        return microseconds{some(period)};
    case 6:
        return microseconds{period + some(2) - 1};
    case 7:
        return microseconds{some(3 * unit)};
    case 8:
        return std::clamp(last_wait, microseconds{0}, microseconds{std::int64_t{1} << 50}) +
               microseconds{some(1) - (last_wait.count() > 0 ? 1 : 0)};
    default:
        return microseconds{
            static_cast<std::int64_t>((static_cast<wide>(s.pace_by) * period) >> 30)}; // up to four periods
    }
}

// Returns by how much the clock steps back.
inline microseconds clock_step(const step& s, const rule& r)
{
    switch (s.pace_by % 5) {
    case 0:
        return microseconds{1};
    case 1:
        return microseconds{s.size_by % 1'000'000};
    case 2:
        return r.period;
    case 3:
        return std::chrono::hours{24 * 10};
    default:
        return microseconds{s.size_by % (static_cast<std::uint64_t>(r.period.count()) * 3 + 1)};
    }
}

inline std::uint64_t cost_of(const step& s, std::uint64_t limit, std::uint64_t remaining)
{
    switch (s.size) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
        return 1;
    case 4:
        return s.size_by % 4;
    case 5:
        return remaining;
    case 6:
        return remaining + 1;
    case 7:
        return limit;
    case 8:
        return limit + 1;
    case 9:
        return UINT64_MAX - s.size_by % 3;
    case 10:
        return s.size_by % (limit + 1);
    default:
        return limit / 2 + s.size_by % 2;
    }
}

// From 1 per month to 10 million per second.
inline rule any_rate(algorithm kind)
{
    rule r;
    r.name = "any";
    r.kind = kind;
    const auto period = *rc::gen::element<std::int64_t>(1'000'000, 1'000, 60'000'000, 3'600'000'000, 86'400'000'000,
                                                        2'592'000'000'000, 7, 999'983, 61'000'001);
    r.period = microseconds{period};
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(3, period * 10));
    r.count = *full_size(rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(1, std::min<std::uint64_t>(most, 12)),
                                        rc::gen::inRange<std::uint64_t>(1, std::min<std::uint64_t>(most, 2'000)),
                                        rc::gen::inRange<std::uint64_t>(1, most)));
    return r;
}
inline rule any_rule(algorithm kind)
{
    rule r = any_rate(kind);
    if (r.is_bucket()) {
        r.capacity =
            *full_size(rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(1, 8), rc::gen::inRange<std::uint64_t>(1, 1'000),
                                      rc::gen::inRange<std::uint64_t>(1, (std::uint64_t{1} << 31) + 1)));
        r.initial =
            *full_size(rc::gen::oneOf(rc::gen::just(r.capacity), rc::gen::inRange<std::uint64_t>(0, r.capacity + 1)));
    }
    if (kind == algorithm::sliding_log)
        r.count = 1 + r.count % 40;
    if (kind == algorithm::concurrency) {
        r.count = 1 + r.count % 50;
        r.period = microseconds{0};
    }
    if (kind == algorithm::fixed_window)
        r.align = *rc::gen::element(window_align::first, window_align::clock);
    return r;
}
inline time_point any_start() { return start + microseconds{in_range<std::int64_t>(0, 200'000'000'000)}; }

inline void showValue(const rule& r, std::ostream& out)
{
    out << "kind " << static_cast<int>(r.kind) << ' ' << r.count << " per " << r.period.count() << " us, capacity "
        << r.capacity << ", initial " << r.initial << ", align " << static_cast<int>(r.align);
}

inline constexpr algorithm every_algorithm[] = {
    algorithm::token_bucket,   algorithm::leaky_bucket, algorithm::gcra,       algorithm::fixed_window,
    algorithm::sliding_window, algorithm::sliding_log,  algorithm::concurrency};
inline std::string name_of(algorithm kind)
{
    constexpr const char* names[] = {"token_bucket",   "leaky_bucket", "gcra",       "fixed_window",
                                     "sliding_window", "sliding_log",  "concurrency"};
    return names[static_cast<std::size_t>(kind)];
}

} // namespace headgate::testing
