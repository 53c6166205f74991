// A configuration in words, for `headgate check`.
#pragma once

#include "config/model.hpp"

#include <string>

namespace headgate::config {

std::string summarise(const gateway_config& config);

// Returns what a rule allows: `60 per minute`, `10 at the same time`, `5000 tokens per calendar day (UTC)`.
std::string limit_in_words(const rule_config& rule);

// Returns one rule: `60 per minute for each user, at most 60 at once`.
std::string in_words(const rule_config& rule);

} // namespace headgate::config
