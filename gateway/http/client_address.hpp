// Finds the client's address: the socket's peer, unless the peer is a trusted proxy; then the nearest hop that is not a
// trusted proxy (K1 to K3). X-Forwarded-For is read from the right, so addresses that a client has written itself have
// no effect.
#pragma once

#include "gateway/http/head/field_block.hpp"
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
    bool peer_trusted = false; // X-Forwarded-Proto and -Host of the peer are trusted (C3)
};

client_address find_client_address(const ip_address& peer, const field_list& fields, const client_address_rules& rules);

// Returns the network that limits count by: an IPv6 network usually belongs to one customer.
inline ip_address aggregate(const ip_address& address, unsigned ipv4_prefix = 32, unsigned ipv6_prefix = 64) noexcept
{
    return address.prefix(address.is_v4() ? ipv4_prefix : ipv6_prefix);
}

} // namespace headgate::http
