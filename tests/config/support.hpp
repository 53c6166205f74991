// What the tests of config/ share: a world with known variables, and problems as lines.
#pragma once

#include "config/load.hpp"

#include <string>
#include <vector>

namespace headgate::config::testing {

// HEADGATE_TEST_TOKEN is `tok-secret`, nothing else is set; files are the real ones, but Europe/Paris is always there.
outside test_world();

load_result load(const std::string& yaml);
std::vector<std::string> lines(const std::vector<problem>& problems);
std::string joined(const std::vector<problem>& problems);
std::string read_text(const std::string& path);

// The shortest configuration with one rule; `rule` is what follows its name and key.
std::string with_rule(const std::string& rule);

} // namespace headgate::config::testing
