// The only supported upgrade: a WebSocket handshake (C7, RFC 6455 §4). Other values of Upgrade are removed and the
// request stays ordinary HTTP; h2c is never forwarded.
#pragma once

#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"

#include <array>
#include <string_view>

namespace headgate::http {

enum class upgrade_kind : std::uint8_t
{
    none,
    websocket
};

// Reads the upgrade of a request. Returns `bad_upgrade` for a handshake with a wrong key or a body, `upgrade_version`
// for a version other than 13.
http_error read_upgrade(const request_head& head, const request_framing& framing, upgrade_kind& out);

// Returns the Sec-WebSocket-Accept value for this key (base64 of SHA-1).
std::array<char, 28> websocket_accept(std::string_view key);

// Returns whether this 101 answers the handshake with `key`. If not, no bytes may be tunnelled.
bool accepts_websocket(const response_head& head, const connection_options& connection, std::string_view key);

} // namespace headgate::http
