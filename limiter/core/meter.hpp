// A meter is a rule with its constants reduced and multiplied out once, for fast decisions.
//
// All arithmetic is in integers and exact. A bucket counts time in ticks, fractions of a microsecond chosen so that one
// unit of cost is a whole number of ticks: `count` per `period` in lowest terms is `ticks_per_us` units every
// `ticks_per_unit` microseconds. 128 bits hold 2^53 x 2^53 x 2^20 without overflow, so nothing is rounded.
#pragma once

#include "limiter/core/decision.hpp"
#include "limiter/core/rule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace headgate::limiter {

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

// The state of a rule for one key: a few 64-bit words, all zero when the key has fully recovered.
using state = std::span<std::uint64_t>;
using const_state = std::span<const std::uint64_t>;

struct meter
{
    explicit meter(rule r);

    rule limits;
    std::uint64_t ticks_per_us = 1;   // buckets
    std::uint64_t ticks_per_unit = 1; // buckets
    wide tolerance = 0;               // buckets: capacity in ticks
    bool narrow = false;              // buckets: 64 bits hold its ticks until the year 2112
    std::uint64_t unit_inverse = 0;   // buckets: 2^64 / ticks_per_unit, to divide by multiplying

    // Words of state for a new key. A sliding log grows from there to `max_words`.
    std::size_t words() const;
    std::size_t max_words() const;
};

// Gives a new key the rule's `initial` tokens.
// REQUIRES: `s` is `words()` zeros.
void begin(const meter& m, state s, moment now);

// Decides whether `cost` would be admitted now, and changes nothing. A cost of 0 reads the state.
decision judge(const meter& m, const_state s, moment now, std::uint64_t cost);

// Charges `cost`, whether it fits or not.
// REQUIRES: a sliding log has a free record (see log_is_full).
void charge(const meter& m, state s, moment now, std::uint64_t cost);

// Charges `cost` of a refused request, but never fills the rule beyond its limit.
void charge_refused(const meter& m, state s, moment now, std::uint64_t cost);

// Gives back up to `cost` that was charged at `charged_at`. Returns the amount given back, at most what is used.
std::uint64_t give_back(const meter& m, state s, moment charged_at, moment now, std::uint64_t cost);

// Makes room for up to `n` more. Returns for how many, at most what is used.
std::uint64_t grant(const meter& m, state s, moment now, std::uint64_t n);

// Moves every time in the state by `by`.
void shift(const meter& m, state s, microseconds by);

// Takes a state that was written at `written`, by a clock that was ahead, as if it had been written now: what was used
// stays used, and recovers as fast as the rule allows. A window that follows the wall clock becomes the one that now
// runs. Does nothing when `written` is not in the future.
void rewind(const meter& m, state s, time_point written, moment now);

// Follows a step of the wall clock, which was ahead by `before`. A window that is over by the new wall clock ends; what
// was used in a later window counts in the one that now runs. Other states do not change.
void follow_wall(const meter& m, state s, microseconds before, moment now);

// Returns the moment at which the key has fully recovered; a past moment when it already has. For concurrency in use:
// time_point::max().
time_point recovered_at(const meter& m, const_state s);

// Returns whether a sliding log has no free record for another charge at `now`.
bool log_is_full(const meter& m, const_state s, time_point now);

// How much use is carried to a lower limit. up_to_limit: when the rule has changed. all: when the key has changed to
// another plan; otherwise a client could lose its use by switching plans. To the same limit everything is carried.
enum class carry
{
    up_to_limit,
    all
};

// Converts the use under `from` to `to` (docs/limits.md, "A change of limits").
// REQUIRES: `fresh` is to.words() zeros, or for a sliding log as many as `from` had.
void convert(const meter& from, const_state old, const meter& to, state fresh, moment now,
             carry how = carry::up_to_limit);

// Returns whole seconds as redis-cell prints them: truncated, plus one when at least a millisecond is left over.
std::int64_t redis_cell_seconds(microseconds t);

} // namespace headgate::limiter
