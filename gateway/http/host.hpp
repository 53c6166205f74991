// host[:port] in Host and in an absolute request target (B27). No name is resolved here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::http {

struct host_port
{
    std::string_view host;             // with brackets when it is an IPv6 address
    std::optional<std::uint16_t> port; // none when the text has none
};

// Parses a name, an IPv4 address or an IPv6 address in brackets, optionally with a port. Returns nothing for other
// texts. Stricter than RFC 3986: letters, digits and "-._~" only, no empty host, no empty port.
std::optional<host_port> parse_host(std::string_view text) noexcept;

// Returns whether both mean the same server: case, a trailing dot, the spelling of an address and an explicit default
// port do not matter.
bool same_authority(std::string_view a, std::string_view b, std::uint16_t default_port) noexcept;

// Returns the host as in routes: without port and without a trailing dot. An IPv6 address is in its one spelling (RFC
// 5952), in `buffer`.
using host_text = std::array<char, 48>;
std::string_view routing_host(std::string_view host_and_port, host_text& buffer) noexcept;

} // namespace headgate::http
