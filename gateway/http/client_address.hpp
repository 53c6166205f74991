// Who the client is: the socket's peer, unless the peer is a proxy we trust; then the nearest hop that is not (K1-K3).
// X-Forwarded-For is read from the right, so nothing a client writes itself is ever believed.
#pragma once

#include "gateway/http/field_block.hpp"
#include "gateway/http/ip_address.hpp"

namespace headgate::http {

enum class hop_source : std::uint8_t
{
    x_forwarded_for,
    forwarded // RFC 7239; X-Forwarded-For is then ignored
};

struct client_address_rules
{
    address_set trusted_proxies;
    hop_source source = hop_source::x_forwarded_for;
};

struct client_address
{
    ip_address address;
    bool peer_trusted = false; // the peer's own X-Forwarded-Proto and -Host may be believed (C3)
};

client_address find_client_address(const ip_address& peer, const field_list& fields, const client_address_rules& rules);

// The address a limit is counted under: a whole IPv6 network belongs to one customer.
inline ip_address aggregate(const ip_address& address, unsigned ipv4_prefix = 32, unsigned ipv6_prefix = 64) noexcept
{
    return address.prefix(address.is_v4() ? ipv4_prefix : ipv6_prefix);
}

} // namespace headgate::http
