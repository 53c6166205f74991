// A key's value in Redis, decoded to the state words of limiter/core and encoded again. Used for everything but
// requests: converting a value to other rules, and the operators' verbs. The caller reads the value, changes it here,
// and writes it with replace.lua; when another gateway has changed it in between, the caller starts again.
#pragma once

#include "limiter/core/decision.hpp"
#include "limiter/redis/packed_group.hpp"
#include "limiter/redis/scripts.hpp"
#include "limiter/redis/take_call.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter::redis {

struct held_slots
{
    std::uint64_t holder = 0;
    std::uint64_t count = 0;
    time_point expires{};

    friend bool operator==(const held_slots&, const held_slots&) = default;
};

struct rule_state
{
    std::vector<std::uint64_t> words; // as limiter/core has them; in flight: the sum of `holders`
    std::vector<held_slots> holders;

    friend bool operator==(const rule_state&, const rule_state&) = default;
};

// What a chain over several slots has charged and not confirmed yet.
struct reserved_part
{
    std::uint64_t id = 0;
    time_point expires{}, charged_at{};
    std::uint64_t holder = 0;
    std::vector<std::uint64_t> costs; // one per rule; 0: nothing was charged

    friend bool operator==(const reserved_part&, const reserved_part&) = default;
};

struct key_value
{
    time_point last{}; // when it was last written
    time_point blocked_until{};
    std::vector<rule_state> rules;
    std::vector<reserved_part> reserved;

    friend bool operator==(const key_value&, const key_value&) = default;
};

// Returns the fingerprint of the rules that a value was written under; nothing when it cannot be a value of headgate.
std::optional<std::uint64_t> fingerprint_in(std::string_view value);

// Decodes a value. Returns nothing when the bytes do not fit the rules exactly.
std::optional<key_value> decode(const packed_group& group, std::string_view value);
std::string encode(const packed_group& group, const key_value& value);

// Returns the value of a key that was never used.
key_value fresh_value(const packed_group& group, time_point now);
// Brings the value to `now`: slots in flight that were not renewed are free, and reservations that were not confirmed
// in time are given back. A value from the future was written by a clock that was ahead: it counts as if it had been
// written now.
void advance(const packed_group& group, key_value& value, time_point now);
// Keeps at most `most[i]` slots of the holder for rule i of `as`, matched by name, and renews them; `most` empty: only
// renews them. Reservations that are not confirmed yet count beside. REQUIRES: advance() was called.
void keep_slots(const packed_group& group, key_value& value, const holder& of, const packed_group& as,
                std::span<const std::uint64_t> most);
// Returns how long the value must live in Redis.
std::chrono::milliseconds time_to_live(const packed_group& group, const key_value& value, time_point now);

// Converts the counters to other rules, matched by name. Another plan of the same group: carry::all. Reservations count
// as used from now on: the gateway that made them does not know the new rules.
key_value convert_value(const packed_group& from, const key_value& old, const packed_group& to, time_point now,
                        carry how);
// Returns carry::all when the fingerprint is that of the group or of one of its variants, in the current version.
carry how_to_carry(std::uint64_t from_fingerprint, const rule_group& to);

// The operators' verbs, with the same results as in memory_store.
std::vector<decision> decisions_of(const packed_group& group, const key_value& value, time_point now);
std::uint64_t grant(const packed_group& group, key_value& value, std::uint64_t n, time_point now);
void reset(const packed_group& group, key_value& value);

// Appends a call of replace.lua. `before` is the value as it was read, empty when there was none; an empty `after`
// deletes. The reply is 1 or 0.
void append_replace(std::string& out, std::string_view key, std::string_view before, std::string_view after,
                    std::chrono::milliseconds time_to_live, call_by by = call_by::digest);

} // namespace headgate::limiter::redis
