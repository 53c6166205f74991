// A decision about one chain in Redis: the arguments of take.lua, and the meaning of its reply. The script decides and
// charges. From the state that it returns, the decisions are computed here, by the arithmetic of limiter/core that the
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
    std::string_view key;                 // as append_key writes it; no two of a chain the same
    std::span<const std::uint64_t> costs; // one per rule; none: each costs 1
};

// A gateway that holds requests in flight. They are released when it has not renewed them for `lifetime`.
struct holder
{
    std::uint64_t id = 0; // below 2^53, another for each gateway
    microseconds lifetime{60'000'000};
};

// A part of a chain that is decided in several places: what it takes is given back after `lifetime` unless it is
// confirmed (correct_call.hpp). 0: none.
struct reservation_terms
{
    std::uint64_t id = 0; // below 2^53, no two of a key the same
    microseconds lifetime{0};
};

struct take_options
{
    bool look = false;    // judge, change nothing
    bool replace = false; // a value that is not ours, or whose rules are lost, counts as none
    holder who;
    time_point guess{}; // Redis's time, about: for windows of a calendar
    reservation_terms reserve;
    bool refused = false; // by a part in another slot: count the refusal where rules do, take nothing
};

void append_take(std::string& out, std::span<const chain_part> parts, const take_options& how,
                 call_by by = call_by::digest, const script& s = take_script());
// Returns the one argument of a call about one part, for a call that is made later.
std::string take_argument(const chain_part& part, const take_options& how);

enum class call_status
{
    done,
    boundaries,  // ask again, with `now` as the guess
    other_rules, // of `part`, whose value is in `value`: convert it (key_value.hpp), then ask again
    foreign,     // what `part` holds is not ours: ask again with `replace`
    lapsed,      // `value` of `part` has a reservation whose time is over: give it back, then ask again
    unusual,     // of take_each.lua: ask take.lua
    malformed,   // not an answer of the script
    disagreement // the script admits and the arithmetic does not, or the other way: a mistake of ours
};

struct call_answer
{
    call_status status = call_status::malformed;
    std::size_t part = 0;
    time_point now{};
    std::string_view value;
};

// Reads the reply to an append_take of the same parts and options. When it is `done`, the verdict and one decision a
// rule, part by part, are as memory_store would give them.
call_answer read_take(std::string_view reply, std::span<const chain_part> parts, const take_options& how, verdict& out,
                      std::span<decision> decisions);

// A chain that was decided by several calls: the parts of one call, and its reply.
struct partial_reply
{
    std::span<const chain_part> parts;
    std::span<const std::uint8_t> places; // of them in the chain
    std::string_view text;
};
// Returns the status and the time of a reply. `done` does not mean that the rest can be read.
call_answer read_status(std::string_view reply, std::size_t parts);
// The chain as a whole. Each place has a clock of its own.
call_answer read_take(std::span<const partial_reply> replies, const take_options& how, verdict& out,
                      std::span<decision> decisions);
// ... after it was refused, with what each place says now that the refusal is counted there. Who refused is in
// `decisions`, and stays.
call_answer read_counted(std::span<const partial_reply> replies, verdict& out, std::span<decision> decisions);

} // namespace headgate::limiter::redis
