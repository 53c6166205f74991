// What a configuration means, in words, for `headgate check`.
#pragma once

#include "config/model.hpp"

#include <string>

namespace headgate::config {

std::string summarise(const gateway_config& config);

// One rule: `60 per minute for each user, at most 60 at once`.
std::string in_words(const rule_config& rule);

} // namespace headgate::config
