// A meter is a rule made ready to be asked a million times a second: its constants reduced and multiplied out once.
//
// All arithmetic is in integers and exact. A bucket's time is counted in `ticks`, fractions of a microsecond chosen so
// that one unit of cost is a whole number of them: `count` per `period` in lowest terms is `ticks_a_us` units every
// `ticks_a_unit` microseconds. 128 bits hold 2^53 x 2^53 x 2^20 without overflow, so nothing is ever rounded.
#pragma once

#include "limiter/core/decision.hpp"
#include "limiter/core/rule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace headgate::limiter {

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

// A rule's state on one key: a few 64-bit words, all zero for a key that is fully recovered.
using state = std::span<std::uint64_t>;
using const_state = std::span<const std::uint64_t>;

struct meter
{
    explicit meter(rule r);

    rule limits;
    std::uint64_t ticks_a_us = 1;   // buckets
    std::uint64_t ticks_a_unit = 1; // buckets
    wide tolerance = 0;             // buckets: capacity in ticks
    bool narrow = false;            // buckets: 64 bits hold its ticks, from here to the year 2112
    std::uint64_t unit_inverse = 0; // buckets: 2^64 / ticks_a_unit, so that a division is a multiplication

    // Words a new key needs; a sliding log grows from here to `max_words`.
    std::size_t words() const;
    std::size_t max_words() const;
};

// Makes the state of a key never seen (`words()` zeros) start with the rule's `initial` tokens.
void begin(const meter& m, state s, time_point now);

// Would `cost` pass now? Changes nothing. A cost of 0 only looks.
decision judge(const meter& m, const_state s, time_point now, std::uint64_t cost);

// Takes `cost`, whether it fits or not: callers judge first. A sliding log must have room (see log_is_full).
void charge(const meter& m, state s, time_point now, std::uint64_t cost);

// Takes `cost` of a request that was refused, filling the rule to the brim at the most.
void charge_refused(const meter& m, state s, time_point now, std::uint64_t cost);

// Gives back up to `cost` that was charged at `charged_at`. Returns what was really given back: never more than used.
std::uint64_t give_back(const meter& m, state s, time_point charged_at, time_point now, std::uint64_t cost);

// Makes room for up to `n` more, now. Returns for how many: never more than were used.
std::uint64_t grant(const meter& m, state s, time_point now, std::uint64_t n);

// From this moment on the key is as if it had never been seen; the past when it already is. Concurrency in use: max().
time_point recovered_at(const meter& m, const_state s);

// True when a sliding log has no free record for one more charge at `now`.
bool log_is_full(const meter& m, const_state s, time_point now);

// How much of what was used counts under a lower limit: as much as that limit holds, for a rule that has changed for
// everyone; all of it for a key that changed over to another plan, or changing to and fro would wash its use away.
enum class carry
{
    up_to_limit,
    all
};

// Carries what was used under `from` over to `to` (docs/limits.md, "A change of limits"). `fresh` is to.words() zeros,
// or for a sliding log as many as `from` had.
void convert(const meter& from, const_state old, const meter& to, state fresh, time_point now,
             carry how = carry::up_to_limit);

// Whole seconds as redis-cell prints them: truncated, and one more when a millisecond or more is left over.
std::int64_t redis_cell_seconds(microseconds t);

} // namespace headgate::limiter
