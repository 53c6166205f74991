// Which rules a value in Redis was written under: a number of all they say, and the rules as a text that another
// gateway can read, so that it can carry what a key has used over to rules of its own.
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

// One line a rule. A time zone is written as a digest of its offsets: enough to tell two of them apart.
std::string describe_rules(std::span<const rule> rules);
std::string describe_rules(const rule_group& group);

// Strict: nothing when the text is not exactly what describe_rules writes, or holds what no rule may. Rules come back
// without their time zones; carrying over what was used needs only the rules to come with theirs.
std::optional<std::vector<rule>> parse_rules(std::string_view text);

// 1 to 2^53 - 1, of the description: the same on every gateway that has the same rules.
std::uint64_t fingerprint_of(std::string_view description);

} // namespace headgate::limiter::redis
