// Finds the first route, in the order of the file, that matches a request. The cost depends on the length of the path,
// not on the number of routes: a trie over path segments for each host. Only routes with the same host and path pattern
// (or suffix patterns at the same node) are compared one by one. Immutable once built; lookups do not allocate.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/head/field_block.hpp"
#include "gateway/http/methods.hpp"
#include "gateway/http/routes/route_pattern.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::http {

struct capture
{
    std::string_view name;  // views the router's memory
    std::string_view value; // views the path that was looked up
};

struct route_match
{
    static constexpr std::uint32_t none = 0xffffffff;

    std::uint32_t route = none;
    // When no route matched: the methods of the routes that match except for the method. Not zero means 405.
    std::uint64_t allowed_methods = 0;
    std::string_view tail; // the text that "*" matched, without the slash before it
    std::uint32_t capture_count = 0;
    std::array<capture, max_captures> captures;

    bool found() const noexcept { return route != none; }
    std::span<const capture> params() const noexcept { return {captures.data(), capture_count}; }
};

struct route_query
{
    std::string_view host; // host[:port] in any case, from effective_host
    std::string_view path; // normalised, without query; "*" in asterisk form
    method_id method = method_id::other;
    std::string_view method_text;
    const field_list* fields = nullptr;
};

class router
{
public:
    router() = default;
    // Builds the tables. Patterns with a problem (find_problem) match nothing.
    explicit router(const std::vector<route_pattern>& patterns);

    // Finds the route. Overwrites `out`, except captures beyond capture_count.
    void find(const route_query& query, route_match& out) const;

    // Appends methods as in "GET, POST", for the Allow field of a 405.
    void append_allow(byte_buffer& out, std::uint64_t methods) const;

private:
    using node_id = std::uint32_t;
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr node_id no_node = none;
    // Pseudo-parents of the hosts' tries in the table of edges.
    static constexpr node_id exact_hosts = 0xfffffffe;
    static constexpr node_id wildcard_hosts = 0xfffffffd;

    // The data of lookups is small and flat: with thousands of routes the cost is cache misses, not comparisons.
    struct node
    {
        std::uint32_t first_route = route_match::none; // the smallest index below this node: its routes cannot precede
                                                       // a match with a smaller one
        node_id parameter = no_node;
        std::uint32_t exact = none, below = none, suffix = none; // the first of a list of places, by ascending route
        bool has_literals = false;
    };
    // A route at a node; a route for several hosts has several.
    struct place
    {
        std::uint64_t methods = 0; // 0: any
        std::uint32_t route = 0;
        std::uint32_t next = none;
        bool has_headers = false;
        bool ignore_trailing_slash = false;
    };
    // A child by its text. The table uses open addressing, its size is a power of two, and it is at most half full.
    struct edge
    {
        std::uint32_t hash = 0;
        node_id parent = no_node;
        node_id child = no_node;
        std::uint32_t size = 0;
        std::array<char, 16> text{}; // if it fits, else in texts_ at `offset`
        std::uint32_t offset = 0;
    };
    // The data that is read only after a match.
    struct parts
    {
        std::uint32_t first_capture = 0;
        std::uint16_t captures = 0;
        std::uint16_t segments = 0;
        bool has_tail = false;
    };
    struct capture_place
    {
        std::uint32_t segment;
        std::uint32_t name, size; // in texts_
    };
    struct lookup;

    void walk(node_id at, std::size_t position, lookup& state) const;
    template <class Fits>
    void consider(std::uint32_t chain, lookup& state, Fits fits) const;
    bool has_headers(std::uint32_t route, const field_list* fields) const;
    void capture_parts(const parts& matched, std::string_view path, route_match& out) const;
    node_id child(node_id parent, std::string_view text) const noexcept;
    std::uint64_t method_bit(method_id id, std::string_view text) const noexcept;

    void add(std::uint32_t index, const route_pattern& pattern);
    void add_parts(std::uint32_t index, const path_shape& shape);
    void add_below(node_id root, const place& added, const path_shape& shape);
    node_id get_child(node_id parent, std::string_view text);
    node_id new_node();
    void put(const edge& added, std::vector<edge>& into) const;
    std::uint32_t keep_text(std::string_view text);
    std::uint64_t add_methods(const std::vector<std::string>& methods);

    std::vector<node> nodes_;
    std::vector<place> places_;
    std::vector<edge> edges_;
    std::size_t edge_count_ = 0;
    std::vector<parts> parts_; // by route
    std::vector<capture_place> captures_;
    std::vector<std::string> suffixes_;              // by route
    std::vector<std::vector<header_match>> headers_; // by route
    std::string texts_;
    node_id any_host_ = no_node;
    bool has_exact_hosts_ = false;
    bool has_wildcard_hosts_ = false;
    std::vector<std::string> other_methods_; // bit 9 and up
};

} // namespace headgate::http
