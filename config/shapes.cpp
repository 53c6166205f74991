#include "config/shapes.hpp"

#include "config/checks.hpp"
#include "config/describe.hpp"
#include "config/types_group.hpp"

namespace headgate::config {

bool shape<cost_config>::load_short(loading& l, const node& n, const std::string& path, cost_config& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    const about a{.min = 1, .max = limiter::max_count};
    type_of<std::uint64_t>().load(l, n, path, a, &x.fixed.emplace(1));
    return true;
}

void shape<cost_config>::verify(loading& l, const node& n, const std::string& path, const cost_config& x)
{
    const int ways =
        int(x.fixed.has_value()) + int(!x.header.empty()) + int(!x.methods.empty()) + int(!x.settle.empty());
    if (ways > 1)
        l.error(n, path, "a cost comes from one place only; keep one of fixed, header, methods, settle");
    if (ways == 0 && n.find("header") == nullptr && n.find("methods") == nullptr && n.find("settle") == nullptr &&
        n.find("fixed") == nullptr)
        l.error(n, path, "this says nothing of the cost; give one of fixed, header, methods, settle, or a number");
    if (!x.header.empty() && x.fallback > x.max)
        l.error(n, path, "`default` is above `max`; lower it");
}

// Only the keys that mean something together.
json shape<cost_config>::short_dump(const cost_config& x)
{
    if (!x.header.empty())
        return {{"header", x.header}, {"max", x.max}, {"default", x.fallback}};
    if (!x.methods.empty())
        return {{"methods", x.methods}, {"default", x.fallback}};
    if (!x.settle.empty())
        return {{"settle", x.settle}, {"reserve", x.reserve}};
    return x.fixed.value_or(1);
}

json shape<jwt_claim_source>::short_dump(const jwt_claim_source& x)
{
    return x.provider.empty() ? json(x.claim) : json(nullptr);
}

json shape<key_source>::short_dump(const key_source& x) { return x.name.empty() ? json(nullptr) : json(x.name); }

bool shape<jwt_claim_source>::load_short(loading& l, const node& n, const std::string& path, jwt_claim_source& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    type_of<std::string>().load(l, n, path, {}, &x.claim);
    return true;
}

bool shape<key_source>::load_short(loading& l, const node& n, const std::string& path, key_source& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    type_of<std::string>().load(l, n, path, {.check = check_name}, &x.name);
    return true;
}

void shape<key_source>::verify(loading& l, const node& n, const std::string& path, const key_source&)
{
    // Counted by what is written, so that a source with a mistake in it is not also called missing.
    if (n.entries.size() > 1)
        l.error(n, path, "one source is one key; write a list, `- { header: X }` then `- { cookie: y }`");
    if (n.entries.empty())
        l.error(n, path, "this source is empty; write e.g. `{ header: X-API-Key }` or `client_ip`");
}

bool shape<key_config>::load_short(loading& l, const node& n, const std::string& path, key_config& x)
{
    if (!n.is(node_kind::sequence))
        return false;
    type_of<std::vector<key_source>>().load(l, n, path, {}, &x.sources);
    return true;
}

json shape<key_config>::short_schema() { return type_of<std::vector<key_source>>().schema({}); }

} // namespace headgate::config
