// The name of a key in Redis: hg:1:{<group>:<principal>}. Whatever a client writes, no two pairs of group and principal
// ever meet, nothing in them matters to Redis, and the braces make one hash slot of each pair.
//
// Bytes outside a safe alphabet are written as %XX. A long principal is replaced by ~ and 128 bits of its SHA-256; no
// other principal has a bare ~. The same on every gateway: there is no secret in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

inline constexpr std::size_t max_plain_principal = 64; // bytes, once escaped

enum class key_form
{
    plain_when_short,
    always_digest // nothing that names a client is written to Redis
};

void append_key(std::string& out, std::string_view group, std::string_view principal,
                key_form form = key_form::plain_when_short);

// What every key of a group begins with, as a pattern for SCAN.
std::string pattern_of_group(std::string_view group);

// The other way: whose key this is. `principal` of a digested key is its ~ and digest.
struct key_name
{
    std::string group;
    std::string principal;
    bool digested = false;
};
std::optional<key_name> parse_key(std::string_view key);

// Where the rules of a fingerprint are written down.
std::string rules_key(std::uint64_t fingerprint);

} // namespace headgate::limiter::redis
