// YAML text as a small tree of our own that remembers where everything stood. Bounded: depth, nodes after the aliases
// are expanded, one document, valid UTF-8. yaml-cpp does the parsing, never the interpreting: `yes`, `0x10` or `1e3`
// mean only what the field that reads them says.
#pragma once

#include "config/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate::config {

inline constexpr std::uintmax_t max_file_bytes = std::uintmax_t{16} * 1024 * 1024;
inline constexpr std::size_t max_depth = 64;
inline constexpr std::size_t max_nodes = 1'000'000;

enum class node_kind : std::uint8_t
{
    null,
    scalar,
    sequence,
    map,
};

struct node
{
    node_kind kind = node_kind::null;
    bool quoted = false; // 'x' or "x": text, never a number or a word
    int file = 0;
    int line = 0;
    int column = 0;
    std::size_t size = 1; // nodes in it, aliases expanded
    std::string text;     // scalar
    std::vector<const node*> items;
    std::vector<std::pair<const node*, const node*>> entries; // map, in the order of the file

    bool is(node_kind k) const { return kind == k; }
    const node* find(std::string_view key) const;
};

// Owns the nodes. An alias is a second pointer to the node it names.
struct tree
{
    std::deque<node> nodes;
    const node* root = nullptr; // null when the text is empty or could not be parsed
};

// Adds what is wrong to `problems`; a duplicate key is reported and the first one kept.
tree parse_yaml(const std::string& text, int file, const std::string& shown_name, std::vector<problem>& problems);

} // namespace headgate::config
