#include "gateway/compiled/key.hpp"

#include "config/choices.hpp"
#include "gateway/compiled/credentials.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace headgate {

namespace {

using kind = compiled_source::kind;

compiled_source make_builtin(std::string_view name)
{
    compiled_source source;
    source.what = name == "route"    ? kind::route
                  : name == "host"   ? kind::host
                  : name == "method" ? kind::method
                                     : kind::client_ip;
    return source;
}

compiled_source make_source(const config::gateway_config& config, const config::key_source& from)
{
    compiled_source source;
    const auto named = [&](kind what, const std::string& name) {
        source.what = what;
        source.name = name;
        return source;
    };
    if (from.header)
        return named(kind::header, *from.header);
    if (from.cookie)
        return named(kind::cookie, *from.cookie);
    if (from.query)
        return named(kind::query, *from.query);
    if (from.path_param)
        return named(kind::path_param, *from.path_param);
    if (from.jwt_claim) {
        source.verified_by = provider_number(config, from.jwt_claim->provider);
        return named(kind::jwt_claim, from.jwt_claim->claim);
    }
    if (from.api_key) {
        source.verified_by = table_number(config, from.api_key->table);
        return named(kind::api_key, from.api_key->header);
    }
    if (!from.client_ip)
        throw std::logic_error("a key's source that is not implemented passed the check of the configuration");
    source.what = kind::client_ip;
    source.ipv4_prefix = static_cast<unsigned>(from.client_ip->ipv4_prefix);
    source.ipv6_prefix = static_cast<unsigned>(from.client_ip->ipv6_prefix);
    return source;
}

// Adds the sources; a source that names another key is replaced by that key's sources. REQUIRES: no key refers to
// itself, which the check of the file has ensured.
void add_sources(const config::gateway_config& config, const std::vector<config::key_source>& from,
                 std::vector<compiled_source>& to)
{
    for (const auto& source : from) {
        if (source.name.empty())
            to.push_back(make_source(config, source));
        else if (config::is_builtin_key(source.name))
            to.push_back(make_builtin(source.name));
        else
            add_sources(config, config.keys.at(source.name).sources, to);
    }
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

} // namespace

compiled_key compile_key(const config::gateway_config& config, const std::vector<config::key_source>& sources)
{
    compiled_key key;
    add_sources(config, sources, key.sources);
    add_tags(key.sources);
    return key;
}

compiled_key compile_key(const config::gateway_config& config, const std::string& name)
{
    const auto configured = config.keys.find(name);
    if (configured == config.keys.end())
        return {.sources = {make_builtin(name)}}; // the only source, so it needs no tag
    auto key = compile_key(config, configured->second.sources);
    key.missing = configured->second.missing;
    return key;
}

void mark_override_sources(std::span<compiled_key> parts)
{
    const auto is_vouched_for = [](const compiled_source& source) {
        return source.what == kind::jwt_claim || source.what == kind::api_key;
    };
    bool some = false;
    for (const auto& key : parts)
        some = some || std::any_of(key.sources.begin(), key.sources.end(), is_vouched_for);
    for (auto& key : parts) {
        for (auto& source : key.sources)
            source.may_have_overrides = !some || is_vouched_for(source) || source.what == kind::client_ip;
    }
}

} // namespace headgate
