// A decision about one chain in Redis: writes the arguments of take.lua and reads its reply. The script decides and
// charges. The decisions are computed here from the state that it returns, by the arithmetic of limiter/core that the
// memory store uses too. No I/O, and no allocation once the buffer has grown.
#pragma once

#include "limiter/redis/packed_group.hpp"
#include "limiter/redis/scripts.hpp"
#include "limiter/store.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

// One part of a chain.
struct chain_part
{
    const packed_group* group = nullptr;
    std::string_view key;                 // as append_key writes it; different for each part of a chain
    std::span<const std::uint64_t> costs; // one per rule; none: each costs 1
};

// A gateway that holds requests in flight. They are released when it has not renewed them for `lifetime`.
struct holder
{
    std::uint64_t id = 0; // below 2^53, different for each gateway
    microseconds lifetime{60'000'000};
};

// A part of a chain that is decided in several places: what it takes is given back after `lifetime` unless it is
// confirmed (correct_call.hpp). 0: none.
struct reservation_terms
{
    std::uint64_t id = 0; // below 2^53, different for each reservation of a key
    microseconds lifetime{0};
};

struct take_options
{
    bool look = false;    // decide, change nothing
    bool replace = false; // ignore a foreign value, and one whose rules are lost
    holder owner;
    time_point guess{}; // approximate Redis time, for windows of a calendar
    // For rules that count requests in flight: the reply is `boundaries` when Redis's time is later, because nothing
    // waits for it any more, and nothing would end what was charged.
    time_point until = time_point::max();
    reservation_terms reserve;
    // Refused by a part in another slot: count the refusal for rules with count_refused, charge nothing.
    bool refused = false;
};

void append_take(std::string& out, std::span<const chain_part> parts, const take_options& how,
                 call_by by = call_by::digest, const script& s = take_script());
// Returns the one argument of a call about one part, for a call that is made later.
std::string take_argument(const chain_part& part, const take_options& how);

enum class call_status
{
    done,
    boundaries,  // repeat the call with `now` as the guess
    other_rules, // of `part`, whose value is in `value`: convert it (key_value.hpp), then repeat the call
    foreign,     // the key of `part` holds a foreign value: repeat the call with `replace`
    lapsed,      // `value` of `part` has a reservation that has expired: give it back, then repeat the call
    unusual,     // from take_each.lua: call take.lua
    malformed,   // not a reply of the script
    disagreement // script and arithmetic disagree on whether to admit: a defect of headgate
};

struct call_answer
{
    call_status status = call_status::malformed;
    std::size_t part = 0;
    time_point now{};
    std::string_view value;
};

// Reads the reply to an append_take with the same parts and options. When it is `done`, the verdict and one decision
// per rule, part by part, are what memory_store would return.
call_answer read_take(std::string_view reply, std::span<const chain_part> parts, const take_options& how, verdict& out,
                      std::span<decision> decisions);

// The parts of one call, and its reply, for a chain that was decided by several calls.
struct partial_reply
{
    std::span<const chain_part> parts;
    std::span<const std::uint8_t> places; // their indexes in the chain
    std::string_view text;
};
// Returns the status and the time of a reply. `done` does not mean that the rest can be read.
call_answer read_status(std::string_view reply, std::size_t parts);
// Reads the replies for a whole chain. Each call has the clock of its server.
call_answer read_take(std::span<const partial_reply> replies, const take_options& how, verdict& out,
                      std::span<decision> decisions);
// Reads the replies after a refusal was counted. `decisions` has the decisions to the reservations; the rules that
// refused there stay refused.
call_answer read_counted(std::span<const partial_reply> replies, verdict& out, std::span<decision> decisions);

} // namespace headgate::limiter::redis
