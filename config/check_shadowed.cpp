// Warns of routes that are never reached because an earlier one matches all of their requests. One trie of path
// segments per host pattern, so that the time is linear in the size of the routes. It may miss such a route, but every
// warning is true.
#include "config/check.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

namespace headgate::config {

namespace {

using entry_list = std::vector<std::size_t>; // routes, in order

// Many routes may share one pattern and differ in method or header; comparing only the first ones keeps this linear.
constexpr std::size_t most_compared = 32;

struct segment
{
    std::unordered_map<std::string, std::unique_ptr<segment>> children; // `{}` stands for any parameter
    entry_list exact;                                                   // the path ends here
    entry_list prefix;                                                  // `*` follows
};

struct paths_of_host
{
    segment root;
    entry_list any;                                       // routes without a path
    std::unordered_map<std::string, entry_list> suffixes; // *.png
};

std::vector<std::string> split(std::string_view path)
{
    std::vector<std::string> out;
    for (std::size_t i = 1; i <= path.size();) {
        const auto end = std::min(path.find('/', i), path.size());
        const auto part = path.substr(i, end - i);
        out.push_back(part.starts_with("{") ? "{}" : std::string(part));
        i = end + 1;
    }
    return out;
}

class shadow_finder
{
public:
    explicit shadow_finder(const std::vector<route_config>& routes) : routes_(routes) {}

    // Returns an earlier route that matches all requests of this one, or nothing; then adds this one.
    std::optional<std::size_t> find_and_add(std::size_t route)
    {
        const auto found = find(route);
        const auto& match = routes_[route].match;
        for_each_pair(match, [&](const std::string& host, const std::string& path) { add(route, host, path); });
        return found;
    }

private:
    template <class Visit>
    static void for_each_pair(const route_match& match, Visit visit)
    {
        static const std::vector<std::string> anything{""};
        for (const auto& host : match.hosts.empty() ? anything : match.hosts)
            for (const auto& path : match.paths.empty() ? anything : match.paths)
                visit(lower(host), path);
    }

    static std::string lower(std::string text)
    {
        std::transform(text.begin(), text.end(), text.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
        return text;
    }

    std::optional<std::size_t> find(std::size_t route)
    {
        std::optional<std::size_t> last;
        bool all = true;
        for_each_pair(routes_[route].match, [&](const std::string& host, const std::string& path) {
            const auto by = all ? covering(route, host, path) : std::nullopt;
            all = by.has_value();
            last = by;
        });
        return all ? last : std::nullopt;
    }

    std::optional<std::size_t> covering(std::size_t route, const std::string& host, const std::string& path)
    {
        const auto try_host = [&](const std::string& pattern) -> std::optional<std::size_t> {
            const auto it = hosts_.find(pattern);
            return it == hosts_.end() ? std::nullopt : covering_path(route, it->second, path);
        };
        if (const auto found = try_host(""))
            return found;
        if (host.empty())
            return std::nullopt;
        if (const auto found = try_host(host))
            return found;
        const std::size_t from = host.starts_with("*.") ? 2 : 0;
        for (auto dot = host.find('.', from); dot != std::string::npos; dot = host.find('.', dot + 1))
            if (const auto found = try_host("*" + host.substr(dot)))
                return found;
        return std::nullopt;
    }

    std::optional<std::size_t> covering_path(std::size_t route, const paths_of_host& host,
                                             const std::string& path) const
    {
        if (const auto found = first_wider(host.any, route))
            return found;
        if (path.empty())
            return std::nullopt;
        if (const auto found = first_wider(host.root.prefix, route))
            return found;
        if (path.starts_with("*")) {
            const auto it = host.suffixes.find(path);
            return it == host.suffixes.end() ? std::nullopt : first_wider(it->second, route);
        }
        int steps = 256; // bounds the search, which follows both `x` and `{}` at each segment
        return descend(host.root, split(path), 0, route, steps);
    }

    std::optional<std::size_t> descend(const segment& at, const std::vector<std::string>& parts, std::size_t i,
                                       std::size_t route, int& steps) const
    {
        if (--steps < 0)
            return std::nullopt;
        // `/a/*` matches `/a`, `/a/` and everything below, including `/a/b/*`.
        if (i == parts.size()) {
            const auto found = first_wider(at.exact, route);
            return found ? found : first_wider(at.prefix, route);
        }
        if (const auto found = first_wider(at.prefix, route))
            return found;
        if (parts[i] == "*")
            return std::nullopt;
        for (const auto& name : {parts[i], std::string("{}")}) {
            // A parameter matches one segment that is not empty.
            if (name == "{}" && parts[i].empty())
                continue;
            if (const auto it = at.children.find(name); it != at.children.end())
                if (const auto found = descend(*it->second, parts, i + 1, route, steps))
                    return found;
            if (parts[i] == "{}")
                break;
        }
        return std::nullopt;
    }

    std::optional<std::size_t> first_wider(const entry_list& list, std::size_t route) const
    {
        const auto count = std::min(list.size(), most_compared);
        for (std::size_t i = 0; i < count; ++i)
            if (is_wider(routes_[list[i]].match, routes_[route].match))
                return list[i];
        return std::nullopt;
    }

    // Compares methods and headers; the caller has compared host and path.
    static bool is_wider(const route_match& a, const route_match& b)
    {
        const auto has = [&](const std::string& m) {
            return std::find(a.methods.begin(), a.methods.end(), m) != a.methods.end();
        };
        if (!a.methods.empty() && (b.methods.empty() || !std::all_of(b.methods.begin(), b.methods.end(), has)))
            return false;
        return std::all_of(a.headers.begin(), a.headers.end(), [&](const auto& header) {
            const auto it = b.headers.find(header.first);
            return it != b.headers.end() && (header.second == "*" || header.second == it->second);
        });
    }

    void add(std::size_t route, const std::string& host, const std::string& path)
    {
        auto& paths = hosts_[host];
        if (path.empty())
            return paths.any.push_back(route);
        if (path.starts_with("*"))
            return paths.suffixes[path].push_back(route);
        segment* at = &paths.root;
        for (const auto& part : split(path)) {
            if (part == "*")
                return at->prefix.push_back(route);
            auto& child = at->children[part];
            if (!child)
                child = std::make_unique<segment>();
            at = child.get();
        }
        at->exact.push_back(route);
    }

    const std::vector<route_config>& routes_;
    std::unordered_map<std::string, paths_of_host> hosts_;
};

} // namespace

void warn_of_shadowed_routes(checker& c)
{
    const auto& routes = c.config.routes;
    shadow_finder finder(routes);
    for (std::size_t i = 0; i < routes.size(); ++i) {
        const auto path = "routes[" + std::to_string(i) + "]";
        // A match with an error in it may match more than intended.
        const bool valid = c.is_valid(path) && c.is_valid(path + ".match") && c.is_valid(path + ".match.path") &&
                           c.is_valid(path + ".match.host") && c.is_valid(path + ".match.methods");
        if (!valid)
            continue;
        if (const auto by = finder.find_and_add(i))
            c.warn(path, "this route is never reached: routes[" + std::to_string(*by) + "] (" + routes[*by].name +
                             ") at line " + std::to_string(c.at.find("routes[" + std::to_string(*by) + "]").line) +
                             " matches all of its requests; move it before that route, or remove it");
    }
}

} // namespace headgate::config
