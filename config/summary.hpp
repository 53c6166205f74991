// A configuration in words, for `headgate check`.
#pragma once

#include "config/model.hpp"

#include <map>
#include <string>

namespace headgate::config {

// `memory` is the most memory that each memory store may take, by its name.
std::string summarise(const gateway_config& config, const std::map<std::string, byte_size>& memory = {});

// Returns what a rule allows: `60 per minute`, `10 at the same time`, `5000 tokens per calendar day (UTC)`.
std::string limit_in_words(const rule_config& rule);

// Returns one rule: `60 per minute for each user, at most 60 at once`.
std::string in_words(const rule_config& rule);

} // namespace headgate::config
