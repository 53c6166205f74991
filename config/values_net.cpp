// Addresses: networks, host:port, Redis URLs.
#include "config/values.hpp"

#include <algorithm>

namespace headgate::config {

parsed<network> parse_network(std::string_view text)
{
    const auto got = parse_ip_range(text);
    return {{got.range, std::string(text)}, std::string(got.complaint)};
}

std::string host_port::text() const
{
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

namespace {

bool is_host_name(std::string_view host)
{
    if (host.empty() || host.size() > 253 || host.front() == '.' || host.front() == '-')
        return false;
    return std::all_of(host.begin(), host.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_';
    });
}

// Explains a text with a scheme, such as http://host.
std::string without_scheme(std::string_view text, bool name_allowed)
{
    const std::string shape =
        name_allowed ? "host:port, such as api.internal:80" : "address:port, such as 127.0.0.1:80";
    if (text.starts_with("https://") && name_allowed)
        return "it must be " + shape + ", without a scheme; TLS to servers is not built yet";
    return "it must be " + shape + ", without a scheme and without a path";
}

// Explains a name where only an address can be used.
std::string why_no_name(std::string_view host)
{
    const auto name = host == "localhost" ? "`localhost`" : "a name";
    return std::string("it must be an address, not ") + name +
           ", which may have several: 127.0.0.1:8080 or [::1]:8080 for this machine only, 0.0.0.0:8080 or [::]:8080 "
           "for "
           "all networks";
}

} // namespace

parsed<host_port> parse_host_port(std::string_view text, bool name_allowed)
{
    const char* expected = name_allowed ? "it must be host:port, such as 127.0.0.1:9000 or api.internal:9000"
                                        : "it must be address:port, such as 127.0.0.1:8080 or [::1]:8080";
    host_port out;
    if (text.find("://") != std::string_view::npos)
        return {out, without_scheme(text, name_allowed)};
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos)
        return {out, expected};
    auto host = text.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
        if (host.find(':') == std::string_view::npos || !parse_address(host))
            return {out, expected};
    } else if (host.find(':') != std::string_view::npos) {
        return {out, "an IPv6 address needs brackets, such as [::1]:8080"};
    } else if (!parse_address(host) && !(name_allowed && is_host_name(host))) {
        return {out, !name_allowed && is_host_name(host) ? why_no_name(host) : expected};
    }
    const auto port = parse_count(text.substr(colon + 1));
    if (!port)
        return {out, expected};
    if (port.value > 65535)
        return {out, "the port must be 0 to 65535"};
    out.host = std::string(host);
    out.port = static_cast<std::uint16_t>(port.value);
    return {out, {}};
}

namespace {

struct scheme
{
    std::string_view name;
    redis_url::topology shape;
    bool tls;
    std::uint16_t port;
};
constexpr scheme schemes[] = {
    {"redis://", redis_url::topology::single, false, 6379},
    {"rediss://", redis_url::topology::single, true, 6379},
    {"redis+sentinel://", redis_url::topology::sentinel, false, 26379},
    {"rediss+sentinel://", redis_url::topology::sentinel, true, 26379},
    {"redis+cluster://", redis_url::topology::cluster, false, 6379},
    {"rediss+cluster://", redis_url::topology::cluster, true, 6379},
};

constexpr const char* url_shape = "it must be redis://host:port/db, rediss://…, unix:///path, "
                                  "redis+sentinel://host,host/master or redis+cluster://host,host";

std::string parse_servers(std::string_view list, std::uint16_t default_port, redis_url& out)
{
    while (!list.empty()) {
        const auto comma = list.find(',');
        auto one = std::string(list.substr(0, comma));
        list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
        const bool v6 = !one.empty() && one.front() == '[';
        const bool has_port = v6 ? one.find("]:") != std::string::npos : one.find(':') != std::string::npos;
        const auto server = parse_host_port(has_port ? one : one + ":" + std::to_string(default_port), true);
        if (!server)
            return url_shape;
        out.servers.push_back(server.value);
    }
    return out.servers.empty() ? url_shape : "";
}

// Parses what follows the servers: the database, or the name of the primary (Sentinel) and then the database.
std::string parse_tail(std::string_view tail, redis_url& out)
{
    if (out.shape == redis_url::topology::sentinel) {
        const auto slash = tail.find('/');
        out.master = std::string(tail.substr(0, slash));
        if (out.master.empty())
            return "the primary's name is missing; write redis+sentinel://host,host/master-name";
        tail = slash == std::string_view::npos ? std::string_view{} : tail.substr(slash + 1);
    }
    if (tail.empty())
        return {};
    const auto database = parse_count(tail);
    if (!database || database.value > 65535)
        return "the database after the last `/` must be a number";
    if (out.shape == redis_url::topology::cluster && database.value != 0)
        return "a Redis Cluster has only database 0";
    out.database = static_cast<unsigned>(database.value);
    return {};
}

} // namespace

parsed<redis_url> parse_redis_url(std::string_view text)
{
    redis_url out;
    if (text.starts_with("unix://")) {
        out.socket = std::string(text.substr(7));
        out.text = std::string(text);
        return {out, out.socket.starts_with("/")
                         ? ""
                         : "a Unix socket needs an absolute path, such as unix:///run/redis.sock"};
    }
    const auto* found =
        std::find_if(std::begin(schemes), std::end(schemes), [&](const scheme& s) { return text.starts_with(s.name); });
    if (found == std::end(schemes))
        return {out, url_shape};
    out.shape = found->shape;
    out.tls = found->tls;
    auto rest = text.substr(found->name.size());
    out.text = std::string(found->name);
    const auto slash = rest.find('/', rest.rfind('@') == std::string_view::npos ? 0 : rest.rfind('@'));
    if (const auto at = rest.substr(0, slash).rfind('@'); at != std::string_view::npos) {
        const auto user = rest.substr(0, at);
        const auto colon = user.find(':');
        out.username = std::string(user.substr(0, colon));
        if (colon != std::string_view::npos)
            out.password = secret(std::string(user.substr(colon + 1)));
        out.text += out.username + (colon != std::string_view::npos ? ":***@" : "@");
        rest = rest.substr(at + 1);
    }
    out.text += std::string(rest);
    const auto end = rest.find('/');
    auto complaint = parse_servers(rest.substr(0, end), found->port, out);
    if (complaint.empty())
        complaint = parse_tail(end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1), out);
    if (complaint.empty() && out.shape == redis_url::topology::single && out.servers.size() > 1)
        complaint = "several servers need redis+sentinel:// or redis+cluster://";
    return {out, complaint};
}

} // namespace headgate::config
