// The name of a key in Redis: hg:1:{<group>:<principal>}. Different pairs of group and principal never have the same
// name, whatever bytes a client sends; no byte has a meaning for Redis; the braces make one hash slot of each pair.
//
// Bytes outside a safe alphabet are written as %XX. A long principal is replaced by ~ and 128 bits of its SHA-256; no
// other principal has a bare ~. The name is the same on every gateway: it depends on no secret.
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
    always_digest // no principal is written to Redis as plain text
};

void append_key(std::string& out, std::string_view group, std::string_view principal,
                key_form form = key_form::plain_when_short);

// Returns a SCAN pattern that matches all keys of a group.
std::string pattern_of_group(std::string_view group);

// The group and principal of a key. `principal` of a digested key is its ~ and digest.
struct key_name
{
    std::string group;
    std::string principal;
    bool digested = false;
};
std::optional<key_name> parse_key(std::string_view key);

// Returns the name of the key that stores the rules of a fingerprint.
std::string rules_key(std::uint64_t fingerprint);

} // namespace headgate::limiter::redis
