// From text to a checked configuration, or to every problem in it at once.
#pragma once

#include "config/model.hpp"
#include "config/outside.hpp"
#include "config/problem.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headgate::config {

struct load_result
{
    std::optional<gateway_config> config; // only when there is no error
    std::vector<problem> problems;        // sorted by place; warnings too
};

load_result load_file(const std::filesystem::path& file, const outside& world = the_real_outside());

// `shown_name` stands in problems and is where relative paths start.
load_result load_text(const std::string& text, const std::string& shown_name,
                      const outside& world = the_real_outside());

} // namespace headgate::config
