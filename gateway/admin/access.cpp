#include "gateway/admin/access.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/ip_address.hpp"
#include "gateway/http/text.hpp"

#include <openssl/crypto.h>

#include <algorithm>

namespace headgate {

namespace {

// The time does not depend on where two secrets of equal length differ.
bool has_token(std::string_view authorization, std::string_view token)
{
    constexpr std::string_view scheme = "bearer ";
    return authorization.size() == scheme.size() + token.size() &&
           http::equals_ignoring_case(authorization.substr(0, scheme.size()), scheme) &&
           CRYPTO_memcmp(authorization.data() + scheme.size(), token.data(), token.size()) == 0;
}

bool is_known_host(std::string_view field, const std::vector<std::string>& names)
{
    const auto parsed = http::parse_host(field);
    if (!parsed)
        return false;
    http::host_text text;
    const auto host = http::routing_host(field, text);
    const auto is_host = [host](std::string_view name) { return http::equals_ignoring_case(host, name); };
    return host.starts_with('[') || http::parse_ipv4(host) || is_host("localhost") ||
           std::any_of(names.begin(), names.end(), is_host);
}

} // namespace

admin_access decide_access(const config::admin_config& config, std::string_view host, std::string_view authorization)
{
    if (!config.token.empty())
        return has_token(authorization, config.token.reveal()) ? admin_access::granted : admin_access::needs_token;
    return is_known_host(host, config.hosts) ? admin_access::granted : admin_access::wrong_host;
}

} // namespace headgate
