#include "gateway/compiled/key.hpp"

#include "gateway/compiled/credentials.hpp"

#include <algorithm>
#include <array>

namespace headgate {

namespace {

using config::source_kind;

compiled_source compile_source(const config::gateway_config& config, const config::identity_source& from)
{
    compiled_source source{.what = from.kind,
                           .name = from.name,
                           .ipv4_prefix = from.ipv4_prefix,
                           .ipv6_prefix = from.ipv6_prefix,
                           .label = from.label()};
    if (from.kind == source_kind::jwt_claim)
        source.verified_by = provider_number(config, from.verified_by);
    if (from.kind == source_kind::api_key)
        source.verified_by = table_number(config, from.verified_by);
    return source;
}

void add_tags(std::vector<compiled_source>& sources)
{
    constexpr std::string_view letters = "hcqpjkirom"; // one per kind of source
    std::array<unsigned, letters.size()> seen{};
    for (auto& source : sources) {
        const auto what = static_cast<std::size_t>(source.what);
        source.tag = letters[what];
        if (const auto number = ++seen[what]; number > 1)
            source.tag += std::to_string(number);
        source.tag += '=';
    }
}

// REQUIRES: no key refers to itself, which the check of the file has ensured.
compiled_key compile_sources(const config::gateway_config& config, const std::vector<config::identity_source>& from)
{
    compiled_key key;
    for (const auto& source : from)
        key.sources.push_back(compile_source(config, source));
    return key;
}

// For a key in a header, a cookie or a parameter there is no registered scheme.
std::string challenges_of(const compiled_key& key)
{
    const bool takes_tokens = key.takes(source_kind::jwt_claim);
    const bool takes_others = std::any_of(key.sources.begin(), key.sources.end(),
                                          [](const auto& s) { return s.what != source_kind::jwt_claim; });
    std::string lines;
    if (takes_others)
        lines += "WWW-Authenticate: ApiKey\r\n";
    if (takes_tokens)
        lines += "WWW-Authenticate: Bearer\r\n"; // RFC 6750 §3.1: no error where there was no token
    return lines;
}

// Appends an escaped value of a key's text as identities are spelled: with fewer escapes.
void append_value(http::byte_buffer& out, std::string_view escaped)
{
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
    for (std::size_t i = 0; i < escaped.size(); ++i) {
        if (escaped[i] != '%') {
            out.append(escaped[i]);
            continue;
        }
        const auto byte = static_cast<char>(digit(escaped[i + 1]) * 16 + digit(escaped[i + 2]));
        if (byte > 0x20 && byte < 0x7f && byte != ',' && byte != '=' && byte != '%' && byte != '/')
            out.append(byte);
        else
            out.append(escaped.substr(i, 3));
        i += 2;
    }
}

void append_part(http::byte_buffer& out, const compiled_key& key, std::string_view text)
{
    for (const auto& source : key.sources) {
        if (!text.starts_with(source.tag))
            continue;
        out.append(source.label);
        if (source.what <= source_kind::query)
            return;
        out.append('=');
        return append_value(out, text.substr(source.tag.size()));
    }
    out.append(key.name, '/', text); // anonymous
}

} // namespace

bool compiled_key::takes(source_kind what) const
{
    return std::any_of(sources.begin(), sources.end(), [&](const auto& source) { return source.what == what; });
}

void append_identity(http::byte_buffer& out, std::span<const compiled_key> key, std::string_view text)
{
    for (const auto& part : key) {
        const auto comma = std::min(text.find(','), text.size());
        if (&part != key.data())
            out.append(',');
        append_part(out, part, text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
}

compiled_key compile_key(const config::gateway_config& config, const std::vector<config::key_source>& sources)
{
    auto key = compile_sources(config, config::sources_of(config, sources, "plan"));
    add_tags(key.sources);
    return key;
}

compiled_key compile_key(const config::gateway_config& config, const std::string& name)
{
    auto key = compile_sources(config, config::sources_of(config, name));
    key.name = name;
    const auto configured = config.keys.find(name);
    if (configured == config.keys.end())
        return key; // built in: the only source, so it needs no tag
    add_tags(key.sources);
    key.missing = configured->second.missing;
    key.challenges = challenges_of(key);
    return key;
}

} // namespace headgate
