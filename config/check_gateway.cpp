// Checks of listeners and stores, and the order in which all checks run.
#include "config/check.hpp"

#include <algorithm>
#include <map>

namespace headgate::config {

namespace {

bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::"; }
bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

bool overlap(const host_port& a, const host_port& b)
{
    if (a.port != b.port || a.port == 0)
        return false;
    if (a.host == b.host || parse_address(a.host) == parse_address(b.host))
        return true;
    // IPv6 listeners accept only IPv6, so [::] and 0.0.0.0 do not conflict.
    return is_v6(a.host) == is_v6(b.host) && (is_any(a.host) || is_any(b.host));
}

bool is_loopback(const std::string& host)
{
    const auto address = parse_address(host);
    const ip_range v4{ip_address::v4(0x7f000000), 104}; // 127.0.0.0/8
    return address && (v4.contains(*address) || *address == ip_address{0, 1});
}

void check_tls(checker& c, const tls_config& tls, const std::string& path)
{
    const bool asks = tls.client_certificates != client_certificate::none;
    if (asks && tls.client_ca.empty() && c.is_valid(path + ".client_ca"))
        c.error(path + ".client_certificate",
                "client certificates need `client_ca`, the file with the CA certificates that sign them");
    if (!asks && !tls.client_ca.empty() && c.is_valid(path + ".client_certificate"))
        c.error(path + ".client_ca",
                "client certificates are not requested; set `client_certificate: optional` or `required`");
}

} // namespace

void check_listeners(checker& c)
{
    const auto& listeners = c.config.listeners;
    if (listeners.empty() && c.at.given("listeners") && c.is_valid("listeners"))
        c.error("listeners", "there is no listener; add `- address: 127.0.0.1:8080`");

    std::multimap<std::uint16_t, std::pair<std::string, const host_port*>> by_port;
    const auto add = [&](const host_port& address, const std::string& path) {
        if (!c.is_valid(path))
            return;
        const auto [begin, end] = by_port.equal_range(address.port);
        for (auto it = begin; it != end; ++it) {
            if (!overlap(*it->second.second, address))
                continue;
            const auto first = c.at.find(it->second.first);
            c.error(path, c.quote(path, address.text()) + " is already used by " + it->second.first + " at line " +
                              std::to_string(first.line) + "; choose another port");
            break;
        }
        by_port.emplace(address.port, std::pair{path, &address});
    };
    for (std::size_t i = 0; i < listeners.size(); ++i) {
        const auto path = "listeners[" + std::to_string(i) + "]";
        const auto& listener = listeners[i];
        if (c.at.given(path + ".address"))
            add(listener.address, path + ".address");
        if (listener.tls)
            check_tls(c, *listener.tls, path + ".tls");
        if (listener.limits.request_line.bytes > listener.limits.head.bytes && c.is_valid(path + ".limits.head"))
            c.error(path + ".limits.request_line", "the request line is part of the head and cannot be larger than "
                                                   "`head`, " +
                                                       to_text(listener.limits.head));
        if (listener.proxy_protocol && c.config.trusted_proxies.empty() && c.is_valid("trusted_proxies"))
            c.error(path + ".proxy_protocol", "the PROXY protocol is accepted only from trusted proxies; list them in "
                                              "`trusted_proxies`");
    }
    if (!c.config.admin)
        return;
    add(c.config.admin->address, "admin.address");
    if (!is_loopback(c.config.admin->address.host) && c.config.admin->token.empty() && c.is_valid("admin.address") &&
        c.is_valid("admin.token"))
        c.error("admin.address",
                "an admin listener that is not on a loopback address needs a `token`, such as ${HEADGATE_ADMIN_TOKEN}");
}

void check_stores(checker& c)
{
    for (const auto& [name, store] : c.config.stores) {
        const auto path = "stores." + name;
        if (store.type != store_type::redis || !c.is_valid(path + ".url") || !c.is_valid(path + ".type"))
            continue;
        if (store.tls && !store.url.tls)
            c.error(path + ".tls", "this URL does not use TLS; write rediss://, or remove `tls`");
        if (!store.url.password.empty() && !store.password.empty())
            c.error(path + ".password", "the URL contains a password as well; keep one of them");
        if (store.tls && store.tls->certificate.empty() != store.tls->key.empty())
            c.error(path + ".tls", "`certificate` and `key` belong together; give both or neither");
    }
    // Two snapshots in one file would overwrite each other.
    std::map<std::string, std::string> snapshots;
    for (const auto& [name, store] : c.config.stores) {
        if (!store.snapshot || store.snapshot->path.empty())
            continue;
        const auto path = "stores." + name + ".snapshot.path";
        const auto [first, is_new] = snapshots.emplace(store.snapshot->path, name);
        if (!is_new)
            c.error(path, "the store `" + first->second + "` writes to the same file; give each store its own file");
    }
}

void check_all(checker& c)
{
    check_listeners(c);
    check_stores(c);
    check_identity(c);
    check_chains(c);
    check_guards(c);
    check_routes(c);
    warn_of_shadowed_routes(c);
    // A misspelt reference also leaves its target unused; one message is enough.
    if (has_errors(c.problems))
        return;
    warn_of_unused_identity(c);
    warn_of_invented_identities(c);
    c.warn_unused(c.config.chains, "chains", c.used_chains);
    c.warn_unused(c.config.keys, "keys", c.used_keys);
    c.warn_unused(c.config.stores, "stores", c.used_stores);
    c.warn_unused(c.config.upstreams, "upstreams", c.used_upstreams);
    c.warn_unused(c.config.jwt, "jwt", c.used_jwt);
    c.warn_unused(c.config.api_keys, "api_keys", c.used_api_keys);
}

} // namespace headgate::config
