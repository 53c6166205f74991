// Builds the router's tables from patterns, once per configuration. router.cpp looks routes up.
#include "gateway/http/host.hpp"
#include "gateway/http/routes/router.hpp"
#include "gateway/http/routes/router_hash.hpp"
#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

namespace {

constexpr std::uint64_t never_matches = std::uint64_t{1} << 63;
constexpr std::size_t most_other_methods = 63 - static_cast<std::size_t>(method_id::other);

} // namespace

router::router(const std::vector<route_pattern>& patterns)
{
    parts_.resize(patterns.size());
    suffixes_.resize(patterns.size());
    headers_.resize(patterns.size());
    for (std::uint32_t index = 0; index < patterns.size(); ++index)
        if (find_problem(patterns[index]).empty())
            add(index, patterns[index]);
}

void router::add(std::uint32_t index, const route_pattern& pattern)
{
    const auto shape = *parse_path_pattern(pattern.path);
    add_parts(index, shape);
    headers_[index] = pattern.headers;
    const place added{.methods = add_methods(pattern.methods),
                      .route = index,
                      .has_headers = !pattern.headers.empty(),
                      .ignore_trailing_slash = pattern.ignore_trailing_slash};
    const auto any_host = [&] { return any_host_ != no_node ? any_host_ : any_host_ = new_node(); };
    if (pattern.hosts.empty())
        add_below(any_host(), added, shape);
    for (const auto& host : pattern.hosts) {
        if (host == "*") {
            add_below(any_host(), added, shape);
            continue;
        }
        host_text buffer;
        std::string lower(routing_host(host, buffer));
        std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
        const bool wildcard = lower.starts_with("*.");
        (wildcard ? has_wildcard_hosts_ : has_exact_hosts_) = true;
        const auto root =
            wildcard ? get_child(wildcard_hosts, std::string_view(lower).substr(2)) : get_child(exact_hosts, lower);
        add_below(root, added, shape);
    }
}

void router::add_parts(std::uint32_t index, const path_shape& shape)
{
    auto& made = parts_[index];
    made.first_capture = static_cast<std::uint32_t>(captures_.size());
    made.segments = static_cast<std::uint16_t>(shape.segments.size());
    made.has_tail = shape.end != path_shape::ending::exact;
    suffixes_[index] = shape.suffix;
    for (std::uint32_t i = 0; i < shape.segments.size(); ++i) {
        const auto& segment = shape.segments[i];
        if (!segment.is_parameter)
            continue;
        captures_.push_back({i, keep_text(segment.text), static_cast<std::uint32_t>(segment.text.size())});
        ++made.captures;
    }
}

void router::add_below(node_id at, const place& added, const path_shape& shape)
{
    nodes_[at].first_route = std::min(nodes_[at].first_route, added.route);
    for (const auto& segment : shape.segments) {
        if (!segment.is_parameter) {
            nodes_[at].has_literals = true;
            at = get_child(at, segment.text);
        } else {
            if (nodes_[at].parameter == no_node) {
                const auto created = new_node();
                nodes_[at].parameter = created;
            }
            at = nodes_[at].parameter;
        }
        nodes_[at].first_route = std::min(nodes_[at].first_route, added.route);
    }
    using enum path_shape::ending;
    auto& here = nodes_[at];
    auto* link = shape.end == exact ? &here.exact : shape.end == below ? &here.below : &here.suffix;
    while (*link != none)
        link = &places_[*link].next; // routes come in ascending order: append at the end
    *link = static_cast<std::uint32_t>(places_.size());
    places_.push_back(added);
}

router::node_id router::get_child(node_id parent, std::string_view text)
{
    if (const auto found = child(parent, text); found != no_node)
        return found;
    edge added{.hash = detail::edge_hash(parent, text),
               .parent = parent,
               .child = new_node(),
               .size = static_cast<std::uint32_t>(text.size())};
    if (text.size() <= added.text.size())
        std::copy(text.begin(), text.end(), added.text.begin());
    else
        added.offset = keep_text(text);
    if ((edge_count_ + 1) * 2 > edges_.size()) {
        std::vector<edge> larger(std::max<std::size_t>(16, edges_.size() * 2));
        for (const auto& old : edges_)
            if (old.child != no_node)
                put(old, larger);
        edges_ = std::move(larger);
    }
    put(added, edges_);
    ++edge_count_;
    return added.child;
}

void router::put(const edge& added, std::vector<edge>& into) const
{
    const auto mask = into.size() - 1;
    auto slot = added.hash & mask;
    while (into[slot].child != no_node)
        slot = (slot + 1) & mask;
    into[slot] = added;
}

std::uint32_t router::keep_text(std::string_view text)
{
    texts_.append(text);
    return static_cast<std::uint32_t>(texts_.size() - text.size());
}

router::node_id router::new_node()
{
    nodes_.emplace_back();
    return static_cast<node_id>(nodes_.size() - 1);
}

std::uint64_t router::add_methods(const std::vector<std::string>& methods)
{
    std::uint64_t bits = 0;
    for (const auto& name : methods) {
        const auto id = find_method(name);
        if (id == method_id::other && method_bit(id, name) == 0 && other_methods_.size() < most_other_methods)
            other_methods_.push_back(name);
        const auto known = method_bit(id, name);
        bits |= known != 0 ? known : never_matches; // a list with too many methods must not become "any method"
    }
    return bits;
}

} // namespace headgate::http
