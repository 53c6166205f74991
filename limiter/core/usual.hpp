// The usual requests, judged and charged in one look, inline: a bucket whose numbers fit 64 bits, a fixed window that
// is not over. Charging them writes one word.
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

// As judge() does, where the case is a usual one; false where it is not, and nothing is said then. `said` is made in
// its place: copying what was just written would wait for the stores.
inline bool judge_usual(const meter& m, std::uint64_t* s, time_point now, std::uint64_t cost, decision& said,
                        pending_charge& charge)
{
    if (m.limits.kind == algorithm::fixed_window) {
        const const_state words{s, 2};
        if (fixed_window::is_over(words, now) || cost > max_count)
            return false;
        new (&said) decision(fixed_window::judge(m, words, now, cost));
        charge = {s + 1, std::min(s[1] + cost, max_use)};
        return true;
    }
    if (!bucket::fits_narrow(m, {s, 2}, now, cost))
        return false;
    const auto at = bucket::narrow_ticks(m, now);
    const auto stored = static_cast<std::int64_t>(s[0]);
    new (&said) decision(bucket::judge<std::int64_t>(m, at, stored, cost));
    charge = {s, static_cast<std::uint64_t>(std::max(at, stored)) + cost * m.ticks_a_unit};
    return true;
}

} // namespace headgate::limiter
