// The address of a Redis server.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace headgate::limiter::redis {

struct server_address
{
    std::string host;
    std::uint16_t port = 0;

    std::string text() const { return host + ":" + std::to_string(port); }
    friend bool operator==(const server_address&, const server_address&) = default;
};

// Reads an address as sentinels and nodes write it. Returns nothing when it is malformed.
inline std::optional<server_address> read_address(std::string_view host, std::string_view port)
{
    server_address out{std::string(host), 0};
    const auto* const end = port.data() + port.size();
    const auto [at, error] = std::from_chars(port.data(), end, out.port);
    if (host.empty() || error != std::errc{} || at != end || out.port == 0)
        return std::nullopt;
    return out;
}

} // namespace headgate::limiter::redis
