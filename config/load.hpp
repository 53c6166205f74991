// Loads a checked configuration from YAML, or reports all problems in it.
#pragma once

#include "config/environment.hpp"
#include "config/model.hpp"
#include "config/problem.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headgate::config {

struct load_result
{
    std::optional<gateway_config> config; // set when there is no error
    std::vector<problem> problems;        // errors and warnings, sorted by position
};

load_result load_file(const std::filesystem::path& file, const environment& env = process_environment());

// `shown_name` is the file name in problems; relative paths start from its folder.
load_result load_text(const std::string& text, const std::string& shown_name,
                      const environment& env = process_environment());

// Returns an error for each use of a feature that the configuration describes and this version does not implement, and
// a warning for each use of a default that such a feature will change.
std::vector<problem> not_built_yet(const gateway_config& config);

// Returns the names of these features.
std::vector<std::string> features_not_built();

} // namespace headgate::config
