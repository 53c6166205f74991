// Identifies the rules that a value in Redis was written under: a digest of the rules as a number, and the rules as a
// text that another gateway can read, so that it can convert a key's counters to its own rules.
#pragma once

#include "limiter/core/rule.hpp"
#include "limiter/rule_group.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter::redis {

// Returns the rules as text, one line per rule. A time zone is written as a digest of its offsets, which distinguishes
// it from others.
std::string describe_rules(std::span<const rule> rules);
std::string describe_rules(const rule_group& group);

// Parses that text. Returns nothing when it is not exactly what describe_rules writes, or has a value that no rule may
// have. The rules have no time zones: converting counters needs only the time zones of the new rules.
std::optional<std::vector<rule>> parse_rules(std::string_view text);

// Returns the digest of a description, from 1 to 2^53 - 1: equal on all gateways with the same rules.
std::uint64_t fingerprint_of(std::string_view description);

} // namespace headgate::limiter::redis
