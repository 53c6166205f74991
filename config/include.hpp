// `include:`: several files read as one. Maps of names join, lists follow one another, anything else may stand in one
// file only. Every node keeps the file it came from.
#pragma once

#include "config/outside.hpp"
#include "config/places.hpp"
#include "config/yaml_tree.hpp"

#include <deque>
#include <string>
#include <vector>

namespace headgate::config {

inline constexpr std::size_t max_include_depth = 8;
inline constexpr std::size_t max_included_files = 256;

struct joined_files
{
    std::deque<tree> trees;  // own the nodes
    std::deque<node> copies; // of top-level values, which other files may add to
    node root;               // one map with the keys of all files
    bool usable = false;     // false: nothing could be read of the first file
};

joined_files read_with_includes(const std::string& text, const std::string& shown_name, const outside& world,
                                places& at, std::vector<problem>& problems);

} // namespace headgate::config
