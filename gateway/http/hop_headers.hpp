// Writes new heads for the next hop, in both directions: hop-by-hop fields are dropped, the gateway's own fields are
// added (C1 to C3, C7, C12, B28, B29). The sender's framing is never copied.
#pragma once

#include "gateway/http/answer_head.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/http/connection.hpp"
#include "gateway/http/framing.hpp"
#include "gateway/http/head/head.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::http {

// A route's header changes, prepared once. `set` replaces every line of that name, `add` leaves them.
class header_edits
{
public:
    void remove(std::string_view name);
    void set(std::string_view name, std::string_view value);
    void add(std::string_view name, std::string_view value);

    bool empty() const noexcept { return lines_.empty() && removed_.empty(); }
    bool removes_any() const noexcept { return !removed_.empty(); }
    bool removes(std::string_view name) const noexcept;
    std::string_view lines() const noexcept { return lines_; } // whole lines with CRLF

private:
    std::vector<std::string> removed_;
    std::uint64_t removed_sizes_ = 0; // bit (size % 64): rules out most names without a comparison
    std::string lines_;
};

enum class forwarded_for : std::uint8_t
{
    append, // to what a trusted peer sent, the peer last (C3)
    replace,
    off // a trusted peer's is forwarded as received
};

struct upstream_head_options
{
    std::string_view path;  // origin-form, normalised or as received
    std::string_view query; // with its "?"
    std::string_view host;  // for the Host field: the client's, or the rewritten one
    body_framing body;
    const connection_options* connection = nullptr; // of the client; names fields to drop

    std::string_view peer;          // the socket peer's address
    std::string_view scheme;        // "http" or "https", as the client's connection was
    std::string_view original_host; // the host that the client requested
    bool peer_trusted = false;      // else its X-Forwarded-For, -Proto, -Host, -Port and Forwarded are dropped
    forwarded_for x_forwarded_for = forwarded_for::append;
    bool x_forwarded_proto = true;
    bool x_forwarded_host = true;
    bool forwarded = false; // write RFC 7239's Forwarded too

    std::string_view via; // pseudonym; empty writes none
    header_name request_id_header;
    std::string_view request_id;
    const header_edits* edits = nullptr;
    std::string_view extra_fields; // whole lines with CRLF

    std::optional<std::uint64_t> max_forwards; // as received; it is sent decremented
    bool accepts_trailers = false;             // forward TE: trailers
    bool expect_continue = false;              // forward the expectation instead of answering it here
    bool websocket = false;                    // forward the handshake
    bool keep_alive = true;
    bool keep_underscore_names = false; // default: dropped, as nginx does (B29)
    bool keep_proxy_authorization = false;
};

// Appends the request's head for an upstream.
void build_upstream_head(byte_buffer& out, const request_head& head, const upstream_head_options& options);

struct client_field_options
{
    const connection_options* connection = nullptr; // of the upstream
    std::string_view date;                          // used when the upstream sent none (C12)
    std::string_view via;
    header_name request_id_header;
    std::string_view request_id;
    const header_edits* edits = nullptr;
    std::string_view extra_fields;     // whole lines with CRLF, such as RateLimit
    bool replaces_rate_limits = false; // extra_fields has our RateLimit fields: drop the upstream's
};

// Appends the field lines of an upstream's answer that are forwarded to the client, and the gateway's own.
void append_client_fields(field_lines& out, const response_head& head, const client_field_options& options);

// Appends the forwarded field lines of an interim answer (1xx), without own fields.
void append_interim_fields(field_lines& out, const response_head& head, const connection_options& connection);

// Returns the name of the first field that is dropped because its sender is no trusted proxy; empty: there is none.
std::string_view find_untrusted_claim(const field_list& fields) noexcept;

// Returns whether an answer has quota fields, in any dialect.
bool tells_limits(const field_list& fields) noexcept;

// Returns whether our pseudonym, which no other process has, is in Via: the request has passed through this gateway
// before (C2).
bool passed_through(const field_list& fields, std::string_view pseudonym) noexcept;

} // namespace headgate::http
