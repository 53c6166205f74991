#include "gateway/http/hop_headers.hpp"

#include "gateway/http/text.hpp"

#include <utility>

namespace headgate::http {

namespace {

using enum field_id;

// Never forwarded as received: hop-by-hop fields, and fields that the gateway writes itself.
constexpr std::uint64_t rewritten = bit(connection) | bit(content_length) | bit(http2_settings) | bit(keep_alive) |
                                    bit(proxy_authenticate) | bit(proxy_connection) | bit(te) | bit(trailer) |
                                    bit(transfer_encoding) | bit(upgrade);
// X-RateLimit-Explain is addressed to this gateway: an upstream headgate would explain its limits to any client.
constexpr std::uint64_t rewritten_in_requests =
    rewritten | bit(host) | bit(expect) | bit(proxy_authorization) | bit(x_ratelimit_explain);
constexpr std::uint64_t websocket_fields = bit(sec_websocket_accept) | bit(sec_websocket_extensions) |
                                           bit(sec_websocket_key) | bit(sec_websocket_protocol) |
                                           bit(sec_websocket_version);
constexpr std::uint64_t rate_limit_fields = bit(ratelimit) | bit(ratelimit_limit) | bit(ratelimit_policy) |
                                            bit(ratelimit_remaining) | bit(ratelimit_reset) | bit(x_ratelimit_limit) |
                                            bit(x_ratelimit_remaining) | bit(x_ratelimit_reset);

// Only a trusted peer is believed about the hops before it (C3).
constexpr std::uint64_t claimed_by_proxies =
    bit(x_forwarded_for) | bit(x_forwarded_proto) | bit(x_forwarded_host) | bit(x_forwarded_port) | bit(forwarded);

void append_field(byte_buffer& out, std::string_view name, std::string_view value)
{
    out.append(name, ": ", value, "\r\n");
}

// Returns the fields that are dropped from a request regardless of their value.
std::uint64_t dropped_ids(const upstream_head_options& options)
{
    auto dropped = rewritten_in_requests;
    if (options.keep_proxy_authorization)
        dropped &= ~bit(proxy_authorization);
    if (!options.websocket)
        dropped |= websocket_fields;
    if (options.x_forwarded_for != forwarded_for::off)
        dropped |= bit(x_forwarded_for);
    if (!options.peer_trusted)
        dropped |= claimed_by_proxies;
    if (options.forwarded)
        dropped |= bit(forwarded);
    if (options.max_forwards)
        dropped |= bit(max_forwards);
    dropped |= bit(options.request_id_header.id) & ~bit(other);
    return dropped;
}

// Appends all lines of a list-valued field as one list, to which one more item can be appended.
void append_joined(byte_buffer& out, const field_list& fields, field_id id)
{
    if (!fields.has(id))
        return;
    for (const auto& line : fields.lines)
        if (line.id == id && !line.value.empty())
            out.append(line.value, ", ");
}

bool is_ipv6_text(std::string_view address) { return address.find(':') != std::string_view::npos; }

void append_forwarding(byte_buffer& out, const field_list& fields, const upstream_head_options& options)
{
    if (options.x_forwarded_for != forwarded_for::off) {
        out.append("X-Forwarded-For: ");
        if (options.x_forwarded_for == forwarded_for::append && options.peer_trusted)
            append_joined(out, fields, x_forwarded_for);
        out.append(options.peer, "\r\n");
    }
    if (options.x_forwarded_proto && !(options.peer_trusted && fields.has(x_forwarded_proto)))
        append_field(out, "X-Forwarded-Proto", options.scheme);
    if (options.x_forwarded_host && !options.original_host.empty() &&
        !(options.peer_trusted && fields.has(x_forwarded_host)))
        append_field(out, "X-Forwarded-Host", options.original_host);
    if (!options.forwarded)
        return;
    out.append("Forwarded: ");
    if (options.peer_trusted)
        append_joined(out, fields, field_id::forwarded);
    const bool v6 = is_ipv6_text(options.peer);
    out.append("for=", v6 ? "\"[" : "", options.peer, v6 ? "]\"" : "", ";proto=", options.scheme);
    if (!options.original_host.empty())
        out.append(";host=\"", options.original_host, '"');
    out.append("\r\n");
}

// Appends Connection, TE and Upgrade for the next hop: a sender of TE must name it in Connection (RFC 9110 §10.1.4).
void append_upstream_hop_fields(byte_buffer& out, const upstream_head_options& options)
{
    if (options.accepts_trailers)
        out.append("TE: trailers\r\n");
    if (options.websocket)
        out.append("Upgrade: websocket\r\nConnection: upgrade", options.accepts_trailers ? ", te" : "", "\r\n");
    else if (!options.keep_alive)
        out.append("Connection: close", options.accepts_trailers ? ", te" : "", "\r\n");
    else if (options.accepts_trailers)
        out.append("Connection: te\r\n");
}

void append_framing(byte_buffer& out, const body_framing& body)
{
    if (body.kind == body_kind::length)
        out.append("Content-Length: ", decimal{body.length}, "\r\n");
    else if (body.kind == body_kind::chunked)
        out.append("Transfer-Encoding: chunked\r\n");
}

// Appends Via and the request's id.
template <class Options>
void append_passage(byte_buffer& out, unsigned minor_version, const Options& options)
{
    if (!options.via.empty())
        out.append("Via: 1.", minor_version == 0 ? '0' : '1', ' ', options.via, "\r\n");
    if (!options.request_id_header.empty())
        append_field(out, options.request_id_header.text, options.request_id);
}

template <class Options>
void append_own_lines(byte_buffer& out, const Options& options)
{
    out.append(options.edits != nullptr ? options.edits->lines() : std::string_view{}, options.extra_fields);
}

// Returns whether a field that is not dropped by its id is dropped by its name. Most messages have no such field.
template <class Options>
class names_left_behind
{
public:
    explicit names_left_behind(const Options& options)
        : options_(options),
          has_request_id_(!options.request_id_header.empty() && options.request_id_header.id == other),
          any_(has_request_id_ || (options.connection != nullptr && options.connection->count != 0) ||
               (options.edits != nullptr && options.edits->removes_any()))
    {}
    bool has(const field& line) const { return any_ && look_for(line); }

private:
    [[gnu::noinline]] bool look_for(const field& line) const
    {
        return (options_.connection != nullptr && options_.connection->nominates(line.name)) ||
               (options_.edits != nullptr && options_.edits->removes(line.name)) ||
               (has_request_id_ && line.id == other &&
                equals_ignoring_case(line.name, options_.request_id_header.text));
    }

    const Options& options_;
    bool has_request_id_;
    bool any_;
};

// Appends the lines for which `stays` returns true. Consecutive lines that were received in the form in which they
// would be written are copied as one piece.
template <class Stays>
void append_fields(byte_buffer& out, const field_list& fields, Stays stays)
{
    std::string_view run;
    for (const auto& line : fields.lines) {
        if (stays(line))
            continue;
        if (!line.verbatim) {
            out.append(std::exchange(run, {}), line.name, ": ", line.value, "\r\n");
            continue;
        }
        const auto text = line.line();
        if (run.data() + run.size() == text.data())
            run = {run.data(), run.size() + text.size()};
        else
            out.append(std::exchange(run, text));
    }
    out.append(run);
}

} // namespace

void header_edits::remove(std::string_view name)
{
    removed_.emplace_back(name);
    removed_sizes_ |= std::uint64_t{1} << (name.size() % 64);
}

void header_edits::set(std::string_view name, std::string_view value)
{
    remove(name);
    add(name, value);
}

void header_edits::add(std::string_view name, std::string_view value)
{
    lines_.append(name).append(": ").append(value).append("\r\n");
}

bool header_edits::removes(std::string_view name) const noexcept
{
    if ((removed_sizes_ >> (name.size() % 64) & 1) == 0)
        return false;
    for (const auto& removed : removed_)
        if (equals_ignoring_case(removed, name))
            return true;
    return false;
}

void build_upstream_head(byte_buffer& out, const request_head& head, const upstream_head_options& options)
{
    out.append(head.method, ' ', options.path, options.query, " HTTP/1.1\r\nHost: ", options.host, "\r\n");
    const auto dropped = dropped_ids(options);
    const names_left_behind names(options);
    append_fields(out, head.fields, [&](const field& line) {
        return (dropped & bit(line.id)) != 0 || (line.underscore && !options.keep_underscore_names) || names.has(line);
    });
    append_framing(out, options.body);
    append_forwarding(out, head.fields, options);
    if (options.max_forwards)
        out.append("Max-Forwards: ", decimal{*options.max_forwards == 0 ? 0 : *options.max_forwards - 1}, "\r\n");
    if (options.expect_continue)
        out.append("Expect: 100-continue\r\n");
    append_passage(out, head.minor_version, options);
    append_upstream_hop_fields(out, options);
    append_own_lines(out, options);
    out.append("\r\n");
}

void append_client_fields(field_lines& out, const response_head& head, const client_field_options& options)
{
    auto& text = out.text();
    auto dropped = rewritten;
    if (options.replaces_rate_limits)
        dropped |= rate_limit_fields;
    dropped |= bit(options.request_id_header.id) & ~bit(other);
    const names_left_behind names(options);
    append_fields(text, head.fields,
                  [&](const field& line) { return (dropped & bit(line.id)) != 0 || names.has(line); });
    if (!head.fields.has(date))
        append_field(text, "Date", options.date);
    out.place_framing();
    out.place_connection();
    append_passage(text, head.minor_version, options);
    append_own_lines(text, options);
}

void append_interim_fields(field_lines& out, const response_head& head, const connection_options& connection)
{
    const client_field_options options{.connection = &connection};
    const names_left_behind names(options);
    append_fields(out.text(), head.fields,
                  [&](const field& line) { return (rewritten & bit(line.id)) != 0 || names.has(line); });
}

std::string_view find_untrusted_claim(const field_list& fields) noexcept
{
    if ((fields.present & claimed_by_proxies) == 0)
        return {};
    for (const auto& line : fields.lines)
        if ((bit(line.id) & claimed_by_proxies) != 0)
            return line.name;
    return {};
}

bool tells_limits(const field_list& fields) noexcept { return (fields.present & rate_limit_fields) != 0; }

bool passed_through(const field_list& fields, std::string_view pseudonym) noexcept
{
    if (!fields.has(via) || pseudonym.empty())
        return false;
    for (const auto& line : fields.lines) {
        if (line.id != via)
            continue;
        list_items items(line.value);
        for (std::string_view item; items.next(item);) {
            // protocol received-by [comment]; a comma inside a comment makes items that are no valid entry.
            const auto protocol = item.find_first_of(" \t");
            if (protocol == std::string_view::npos)
                continue;
            const auto rest = trim(item.substr(protocol));
            if (equals_ignoring_case(rest.substr(0, rest.find_first_of(" \t")), pseudonym))
                return true;
        }
    }
    return false;
}

} // namespace headgate::http
