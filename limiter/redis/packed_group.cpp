#include "limiter/redis/packed_group.hpp"

#include "limiter/core/calendar.hpp"
#include "limiter/redis/fingerprint.hpp"

namespace headgate::limiter::redis {

namespace {

constexpr std::uint64_t most = std::uint64_t{1} << 52; // twice that is still exact
constexpr std::int64_t longest_period = 100LL * 366 * 86'400 * 1'000'000;

script_kind kind_of(const rule& r)
{
    switch (r.kind) {
    case algorithm::fixed_window:
        return r.align == window_align::first      ? script_kind::first_call_window
               : r.calendar == calendar_unit::none ? script_kind::clock_window
                                                   : script_kind::calendar_window;
    case algorithm::sliding_window:
        return script_kind::sliding_window;
    case algorithm::sliding_log:
        return script_kind::sliding_log;
    case algorithm::concurrency:
        return script_kind::in_flight;
    default:
        return script_kind::bucket;
    }
}

} // namespace

std::size_t numbers_of(script_kind kind)
{
    return kind == script_kind::sliding_window ? 3 : kind == script_kind::in_flight ? 1 : 2;
}

std::optional<std::string> why_not_in_redis(const rule& r)
{
    if (r.limit() > most || r.count > most)
        return "a limit in Redis is at most 2^52";
    if (r.period.count() > longest_period)
        return "a period in Redis is at most a century";
    if (r.is_bucket()) {
        const meter m(r);
        if (split(m, m.tolerance).us > most)
            return "in Redis a bucket must fill up within 140 years: a smaller burst, or a higher rate";
    }
    return {};
}

packed_group::packed_group(const rule_group& rules)
    : rules_(&rules), description_(describe_rules(rules)), fingerprint_(fingerprint_of(description_)),
      windows_(rules.size())
{
    bool plain = rules.size() <= most_usual_rules;
    for (const auto& m : rules.members()) {
        const auto& r = m.limits.limits;
        const auto kind = kind_of(r);
        kinds_.push_back(kind);
        numbers_ += numbers_of(kind);
        has_slots_ = has_slots_ || kind == script_kind::in_flight;
        has_tails_ = has_tails_ || kind >= script_kind::sliding_log;
        refusals_may_write_ = refusals_may_write_ || r.count_refused || starts_with_less(r);
        plain = plain && kind < script_kind::sliding_window && !r.shadow && !r.unlimited;
    }
    is_usual_ = plain && !refusals_may_write_;
}

const packed_group::window_pair& packed_group::windows_around(std::size_t i, time_point guess) const
{
    auto& known = windows_[i];
    if (guess >= known.start && guess < known.end)
        return known;
    const auto& r = limits(i).limits;
    // Begins at a boundary that is certainly before the window of `guess`, then advances window by window.
    constexpr auto longer_than_any = std::chrono::hours{24 * 33};
    known.start = window_end(r, guess - longer_than_any);
    known.end = window_end(r, known.start);
    while (known.end <= guess) {
        known.start = known.end;
        known.end = window_end(r, known.start);
    }
    known.next_end = window_end(r, known.end);
    return known;
}

} // namespace headgate::limiter::redis
