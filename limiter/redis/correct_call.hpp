// Changes earlier charges in Redis: settle, give back, end, renew, keep at most. Writes the arguments of correct.lua.
#pragma once

#include "limiter/redis/take_call.hpp"

#include <array>

namespace headgate::limiter::redis {

// The correction of one key: the charge of `as_charged.costs` at `charged_at` is changed to `actual`, with one cost per
// rule of as_charged.group; empty gives all back. That group may be an older version of `group`: rules are matched by
// name.
struct correction
{
    const packed_group* group = nullptr;
    std::string_view key; // as append_key writes it
    part as_charged;
    std::span<const std::uint64_t> actual;
    time_point charged_at{};
    enum class rules
    {
        all,
        in_flight, // only the slots of concurrency rules
        others
    };
    rules of = rules::all;
};

struct correct_options
{
    bool replace = false;
    holder owner;
    time_point guess{};
    std::uint64_t reservation = 0;        // not 0: ends this reservation; nothing changes when the key no longer has it
    time_point until = time_point::max(); // for slots: the reply is `boundaries` when Redis's time is later
    std::string_view mark = {};           // a key that the correction sets: when it is set already, nothing changes
};

// Returns what the correction takes from each rule of c.group: how many slots of a request in flight end.
std::array<std::uint64_t, max_rules_per_group> slots_ended(const correction& c);
// Returns whether it changes a rule at all.
bool changes_something(const correction& c);

void append_correct(std::string& out, const correction& c, const correct_options& how, call_by by = call_by::digest,
                    const script& s = correct_script());

// Return the argument of a call that is made later: of a correction, and of one that confirms `how.reservation`.
std::string correct_argument(const correction& c, const correct_options& how);
std::string commit_argument(const packed_group& group, const correct_options& how);

// Appends a call that renews the requests in flight of `how.owner` on the key.
void append_renew(std::string& out, const packed_group& group, std::string_view key, const correct_options& how,
                  call_by by = call_by::digest, const script& s = correct_script());

// Appends a call that keeps at most `most[i]` slots of how.owner for rule i, if it counts requests in flight, and
// renews them. The reply is `boundaries` unless Redis's time is later than `after`.
void append_keep_at_most(std::string& out, const packed_group& group, std::string_view key,
                         std::span<const std::uint64_t> most, time_point after, const correct_options& how,
                         call_by by = call_by::digest, const script& s = correct_script());

call_answer read_correct(std::string_view reply);

} // namespace headgate::limiter::redis
