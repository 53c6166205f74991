// The header fields that the gateway acts on, as small numbers. All other fields are `other` and are only forwarded.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::http {

enum class field_id : std::uint8_t
{
    other,
    authorization,
    connection,
    content_length,
    content_type,
    cookie,
    date,
    expect,
    forwarded,
    host,
    http2_settings,
    keep_alive,
    max_forwards,
    proxy_authenticate,
    proxy_authorization,
    proxy_connection,
    ratelimit,
    ratelimit_limit,
    ratelimit_policy,
    ratelimit_remaining,
    ratelimit_reset,
    referer,
    retry_after,
    sec_websocket_accept,
    sec_websocket_extensions,
    sec_websocket_key,
    sec_websocket_protocol,
    sec_websocket_version,
    server,
    te,
    trailer,
    transfer_encoding,
    upgrade,
    user_agent,
    via,
    x_forwarded_for,
    x_forwarded_host,
    x_forwarded_port,
    x_forwarded_proto,
    x_ratelimit_explain,
    x_ratelimit_limit,
    x_ratelimit_remaining,
    x_ratelimit_reset,
    x_real_ip,
    x_request_id,
    count_
};
static_assert(static_cast<unsigned>(field_id::count_) <= 64, "a head has one word with a bit per present field");

constexpr std::uint64_t bit(field_id id) { return std::uint64_t{1} << static_cast<unsigned>(id); }

// Returns the number of a field name, compared without case.
field_id find_field_id(std::string_view name) noexcept;
// The same for a name of 1 to 15 token bytes. REQUIRES: 16 bytes can be read at `name`.
field_id find_short_field_id(const char* name, std::size_t size) noexcept;

// A name of the configuration, looked up once.
struct header_name
{
    constexpr header_name() = default;
    header_name(std::string_view name) : text(name), id(find_field_id(name)) {}
    header_name(const char* name) : header_name(std::string_view(name)) {}
    constexpr bool empty() const { return text.empty(); }

    std::string_view text;
    field_id id = field_id::other;
};

// Returns whether a field frames a message or identifies its sender. A client may neither remove one by naming it in
// Connection (C1) nor send a second spelling of it (B29).
constexpr bool is_protected(field_id id)
{
    using enum field_id;
    constexpr std::uint64_t protected_ids = bit(authorization) | bit(connection) | bit(content_length) |
                                            bit(content_type) | bit(cookie) | bit(date) | bit(expect) | bit(forwarded) |
                                            bit(host) | bit(max_forwards) | bit(transfer_encoding) | bit(via) |
                                            bit(x_forwarded_for) | bit(x_forwarded_host) | bit(x_forwarded_port) |
                                            bit(x_forwarded_proto) | bit(x_real_ip) | bit(x_request_id);
    return (protected_ids & bit(id)) != 0;
}

// Returns whether `name` is a protected field to an upstream that, like CGI, does not tell "_" from "-" (B29).
bool imitates_protected_field(std::string_view name) noexcept;

// The same for one name of the configuration, such as the header that API keys are read from.
bool imitates(std::string_view name, std::string_view guarded) noexcept;

} // namespace headgate::http
