// Looks routes up. router_build.cpp builds the tables.
#include "gateway/http/routes/router.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/routes/router_hash.hpp"
#include "gateway/http/text.hpp"

namespace headgate::http {

struct router::lookup
{
    const route_query& query;
    std::uint64_t method;
    std::uint32_t best = route_match::none;
    std::uint64_t allowed = 0;
};

void router::find(const route_query& query, route_match& out) const
{
    lookup state{query, method_bit(query.method, query.method_text)};
    const std::size_t first = query.path == "*" ? 2 : 1; // the asterisk form is treated as a path without segments
    host_text buffer;
    const auto host = routing_host(query.host, buffer);
    std::array<char, 256> lower;
    if ((has_exact_hosts_ || has_wildcard_hosts_) && !host.empty() && host.size() <= lower.size()) {
        for (std::size_t i = 0; i < host.size(); ++i)
            lower[i] = to_lower(host[i]);
        const std::string_view name(lower.data(), host.size());
        if (has_exact_hosts_)
            walk(child(exact_hosts, name), first, state);
        for (auto dot = name.find('.'); has_wildcard_hosts_ && dot != std::string_view::npos;
             dot = name.find('.', dot + 1))
            walk(child(wildcard_hosts, name.substr(dot + 1)), first, state);
    }
    walk(any_host_, first, state);

    out.route = state.best;
    out.allowed_methods = out.found() ? 0 : state.allowed;
    out.tail = {};
    out.capture_count = 0;
    if (out.found())
        capture_parts(parts_[out.route], query.path, out);
}

// Visits a node. The next segment begins at `position`, which is one past the end when the path has no more.
void router::walk(node_id id, std::size_t position, lookup& state) const
{
    if (id == no_node)
        return;
    const auto& at = nodes_[id];
    if (at.first_route >= state.best)
        return;
    const auto path = state.query.path;
    const auto always = [](const place&) { return true; };
    consider(at.below, state, always);
    if (position > path.size()) {
        consider(at.exact, state, always);
        return;
    }
    const auto rest = path.substr(position);
    consider(at.suffix, state, [&](const place& tried) { return rest.ends_with(suffixes_[tried.route]); });
    if (rest.empty())
        consider(at.exact, state, [](const place& tried) { return tried.ignore_trailing_slash; });
    const auto segment = rest.substr(0, rest.find('/'));
    const auto next = position + segment.size() + 1;
    if (at.has_literals)
        walk(child(id, segment), next, state);
    if (at.parameter != no_node && !segment.empty())
        walk(at.parameter, next, state);
}

template <class Fits>
void router::consider(std::uint32_t chain, lookup& state, Fits fits) const
{
    while (chain != none) {
        const auto& tried = places_[chain];
        if (tried.route >= state.best)
            return;
        chain = tried.next;
        if (!fits(tried) || (tried.has_headers && !has_headers(tried.route, state.query.fields)))
            continue;
        if (tried.methods == 0 || (tried.methods & state.method) != 0)
            state.best = tried.route;
        else
            state.allowed |= tried.methods;
    }
}

bool router::has_headers(std::uint32_t route, const field_list* fields) const
{
    if (fields == nullptr)
        return false;
    for (const auto& wanted : headers_[route]) {
        bool met = false;
        for (const auto& line : fields->lines)
            met =
                met || (equals_ignoring_case(line.name, wanted.name) && (!wanted.value || line.value == *wanted.value));
        if (!met)
            return false;
    }
    return true;
}

void router::capture_parts(const parts& matched, std::string_view path, route_match& out) const
{
    if (matched.captures == 0 && !matched.has_tail)
        return;
    std::size_t position = 1;
    for (std::uint32_t segment = 0; segment < matched.segments; ++segment) {
        const auto value = path.substr(position, path.find('/', position) - position);
        position += value.size() + 1;
        if (out.capture_count == matched.captures)
            continue;
        const auto& wanted = captures_[matched.first_capture + out.capture_count];
        if (wanted.segment == segment)
            out.captures[out.capture_count++] = {{texts_.data() + wanted.name, wanted.size}, value};
    }
    if (matched.has_tail && position <= path.size())
        out.tail = path.substr(position);
}

router::node_id router::child(node_id parent, std::string_view text) const noexcept
{
    if (edges_.empty())
        return no_node;
    const auto hash = detail::edge_hash(parent, text);
    const auto mask = edges_.size() - 1;
    for (auto slot = hash & mask; edges_[slot].child != no_node; slot = (slot + 1) & mask) {
        const auto& candidate = edges_[slot];
        if (candidate.hash != hash || candidate.parent != parent || candidate.size != text.size())
            continue;
        const char* const known =
            candidate.size <= candidate.text.size() ? candidate.text.data() : texts_.data() + candidate.offset;
        if (std::memcmp(known, text.data(), text.size()) == 0)
            return candidate.child;
    }
    return no_node;
}

std::uint64_t router::method_bit(method_id id, std::string_view text) const noexcept
{
    constexpr auto first_other = static_cast<unsigned>(method_id::other);
    if (id != method_id::other)
        return std::uint64_t{1} << static_cast<unsigned>(id);
    for (std::size_t i = 0; i < other_methods_.size(); ++i)
        if (other_methods_[i] == text)
            return std::uint64_t{1} << (first_other + i);
    return 0;
}

void router::append_allow(byte_buffer& out, std::uint64_t methods) const
{
    constexpr auto first_other = static_cast<std::size_t>(method_id::other);
    bool first = true;
    for (std::size_t i = 0; i < first_other + other_methods_.size(); ++i) {
        if ((methods >> i & 1) == 0)
            continue;
        if (!first)
            out.append(", ");
        first = false;
        out.append(i < first_other ? method_name(static_cast<method_id>(i))
                                   : std::string_view(other_methods_[i - first_other]));
    }
}

} // namespace headgate::http
