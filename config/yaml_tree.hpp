// YAML text as a tree that keeps the position of every node. Depth and the number of nodes, with aliases expanded, are
// bounded; the text is one document in valid UTF-8. yaml-cpp only parses: the field that is loaded decides what `yes`,
// `0x10` or `1e3` means.
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
    bool quoted = false; // 'x' or "x": always text
    int file = 0;
    int line = 0;
    int column = 0;
    std::size_t size = 1; // number of nodes in it, with aliases expanded
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

// Adds errors to `problems`. Of duplicate keys the first one is kept.
tree parse_yaml(const std::string& text, int file, const std::string& shown_name, std::vector<problem>& problems);

// Returns the offset of the first byte that is not UTF-8 or is a control character that YAML forbids; npos if there is
// none.
std::size_t first_bad_byte(std::string_view text);

} // namespace headgate::config
