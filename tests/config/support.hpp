// Shared by the tests of config/: a known environment, and problems as lines.
#pragma once

#include "config/load.hpp"

#include <string>
#include <vector>

namespace headgate::config::testing {

// HEADGATE_TEST_TOKEN is `tok-secret` and no other variable is set. Files are the real ones, except for Europe/Paris.
environment test_environment();

load_result load(const std::string& yaml);
std::vector<std::string> lines(const std::vector<problem>& problems);
std::string joined(const std::vector<problem>& problems);
std::string read_text(const std::string& path);

// Returns a minimal configuration with one rule; `rule` follows its name and key.
std::string with_rule(const std::string& rule);

} // namespace headgate::config::testing
