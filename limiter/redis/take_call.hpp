// One chain asked of Redis: the arguments of take.lua, and what its answer means. The script decides and charges; from
// the state that it found, what clients are told is computed here, by the arithmetic of limiter/core that the memory
// store uses too. No I/O, and no allocation once the buffer has grown.
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
struct asked_part
{
    const packed_group* group = nullptr;
    std::string_view key;                 // as append_key writes it; no two of a chain the same
    std::span<const std::uint64_t> costs; // one a rule; none: each costs 1
};

// Who holds requests in flight. What it holds is released when nobody has renewed it for `lifetime`.
struct holder
{
    std::uint64_t id = 0; // below 2^53, another for each gateway
    microseconds lifetime{60'000'000};
};

struct take_options
{
    bool look = false;    // judge, change nothing
    bool replace = false; // a value that is not ours, or of rules that nobody knows, counts as none
    holder who;
    time_point guess{}; // Redis's time, about: for windows of a calendar
};

void append_take(std::string& out, std::span<const asked_part> parts, const take_options& how,
                 call_by by = call_by::digest, const script& s = take_script());

enum class call_status
{
    done,
    boundaries,  // ask again, with `now` as the guess
    other_rules, // of `part`, whose value is in `value`: convert it (key_value.hpp), then ask again
    foreign,     // what `part` holds is not ours: ask again with `replace`
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
call_answer read_take(std::string_view reply, std::span<const asked_part> parts, const take_options& how, verdict& out,
                      std::span<decision> decisions);

} // namespace headgate::limiter::redis
