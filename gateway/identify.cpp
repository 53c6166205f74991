#include "gateway/identify.hpp"

#include "gateway/exchange.hpp"
#include "gateway/http/host.hpp"
#include "gateway/http/text.hpp"

namespace headgate {

namespace {

constexpr std::size_t longest_header_key = 256;

// Bytes outside the unreserved set become %XX; "%", "," and "=" are outside it.
void append_escaped(http::byte_buffer& out, std::string_view text)
{
    constexpr char digits[] = "0123456789ABCDEF";
    for (const char c : text) {
        if (http::is_class(c, http::detail::unreserved_byte)) {
            out.append(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            const char escaped[] = {'%', digits[byte >> 4], digits[byte & 15]};
            out.append(std::string_view(escaped, 3));
        }
    }
}

void append_lower(http::byte_buffer& out, std::string_view host)
{
    const auto from = out.size();
    append_escaped(out, host);
    for (auto i = from; i < out.size(); ++i)
        out.data()[i] = http::to_lower(out.data()[i]);
}

void append_address(http::byte_buffer& out, const http::ip_address& address)
{
    http::address_text text;
    append_escaped(out, http::format_address(address, text));
}

// The header's one value; null when it is absent.
const http::field* find_single(const http::field_list& fields, std::string_view name, bool& malformed)
{
    const http::field* found = nullptr;
    for (const auto& line : fields.lines) {
        if (!http::equals_ignoring_case(line.name, name))
            continue;
        malformed = malformed || found != nullptr;
        found = &line;
    }
    if (!found)
        return nullptr;
    malformed = malformed || found->value.empty() || found->value.size() > longest_header_key;
    for (const char c : found->value)
        malformed = malformed || c <= 0x20 || c >= 0x7f;
    return found;
}

identity append_configured(http::byte_buffer& out, const config::key_config& key, const exchange& x)
{
    char number = 'a';
    for (const auto& source : key.sources) {
        // The letter tells sources apart: an API key that reads like an address is not that address.
        out.append(number++);
        out.append('=');
        if (source.header) {
            bool malformed = false;
            const auto* line = find_single(x.head().fields, *source.header, malformed);
            if (malformed)
                return identity::malformed;
            if (line) {
                append_escaped(out, line->value);
                return identity::known;
            }
        } else if (source.client_ip || source.name == "client_ip") {
            const auto rules = source.client_ip.value_or(config::client_ip_source{});
            append_address(out, http::aggregate(x.client.address, static_cast<unsigned>(rules.ipv4_prefix),
                                                static_cast<unsigned>(rules.ipv6_prefix)));
            return identity::known;
        } else if (source.name == "route") {
            append_escaped(out, x.route->name);
            return identity::known;
        } else if (source.name == "host") {
            append_lower(out, http::routing_host(x.host));
            return identity::known;
        } else if (source.name == "method") {
            append_escaped(out, x.head().method);
            return identity::known;
        }
        out.truncate(out.size() - 2);
    }
    switch (key.missing) {
    case config::missing_key::refuse:
        return identity::refused;
    case config::missing_key::skip:
        return identity::skipped;
    case config::missing_key::anonymous:
        break;
    }
    out.append("anonymous"); // without a source's letter: no client can be called that
    return identity::known;
}

} // namespace

identity append_key(http::byte_buffer& out, const std::vector<key_reader>& key, const exchange& x)
{
    bool first = true;
    for (const auto& reader : key) {
        if (!std::exchange(first, false))
            out.append(',');
        switch (reader.what) {
        case key_reader::kind::configured:
            if (const auto found = append_configured(out, *reader.key, x); found != identity::known)
                return found;
            break;
        case key_reader::kind::route:
            append_escaped(out, x.route->name);
            break;
        case key_reader::kind::host:
            append_lower(out, http::routing_host(x.host));
            break;
        case key_reader::kind::method:
            append_escaped(out, x.head().method);
            break;
        case key_reader::kind::client_ip:
            append_address(out, http::aggregate(x.client.address));
            break;
        }
    }
    return identity::known;
}

} // namespace headgate
