// host[:port] as it stands in Host and in an absolute request target (B27). No name is resolved here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::http {

struct host_port
{
    std::string_view host;             // with brackets when it is an IPv6 address
    std::optional<std::uint16_t> port; // absent when not written
};

// Empty when `text` is not a name, an IPv4 or a bracketed IPv6 address, optionally with a port. Stricter than RFC 3986
// (ours): letters, digits and "-._~" only, no empty host, no empty port.
std::optional<host_port> parse_host(std::string_view text) noexcept;

// The same server, whatever the case, a trailing dot, or a default port that is written out.
bool same_authority(std::string_view a, std::string_view b, std::uint16_t default_port) noexcept;

// The host alone, as routes are written: without port and without the root's trailing dot.
std::string_view routing_host(std::string_view host_and_port) noexcept;

} // namespace headgate::http
