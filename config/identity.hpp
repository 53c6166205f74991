// The one spelling of an identity, for overrides, plans, the log and operators. Pure.
//
// In full it names the key, the kind of the source, the source's name and the value: user/header:X-API-Key=k1, or
// user/client_ip=203.0.113.7 where the kind has no name. The parts of a composite key are joined by commas. In names
// and values the bytes , = % / and everything that is not visible ASCII are percent-encoded. A shorter form is accepted
// when it can mean only one source: client_ip=203.0.113.7, X-API-Key=k1, and user=tom or tom for a key with one source.
#pragma once

#include "config/model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::config {

enum class source_kind : std::uint8_t
{
    header,
    cookie,
    query,
    path_param,
    jwt_claim,
    api_key,
    client_ip,
    route,
    host,
    method
};
constexpr name_list<10> names_of(source_kind)
{
    return {"header", "cookie", "query", "path_param", "jwt_claim", "api_key", "client_ip", "route", "host", "method"};
}

// A place where the value of a key is read.
struct identity_source
{
    std::string key; // as rules name it; that of a built-in key is its kind
    source_kind kind = source_kind::header;
    std::string name;        // of the header, cookie, parameter, claim; empty for the other kinds
    std::string verified_by; // the provider or the table; empty: the only one
    unsigned ipv4_prefix = 32, ipv6_prefix = 64;
    bool names_provider = false; // the key reads the same claim or header for another provider or table too

    // Returns the spelling without a value: user/header:X-API-Key.
    std::string label() const;
    // Returns whether both read the same place, for whichever keys.
    bool reads_same(const identity_source& other) const;
};

// Returns the sources of a key, or of a list of sources that belongs to `key`, in their order. A reference to another
// key is replaced by that key's sources. References to keys that do not exist, and cycles, are left out.
std::vector<identity_source> sources_of(const gateway_config& config, const std::string& key);
std::vector<identity_source> sources_of(const gateway_config& config, const std::vector<key_source>& sources,
                                        const std::string& key);

// Returns the text with the bytes that separate an identity's parts, and those that are not visible ASCII, as %XX.
std::string percent_encode(std::string_view text);

// One part of an identity: the value of one source.
struct identity_part
{
    const identity_source* source = nullptr;
    std::string value; // as the source reads it from a request

    std::string spelling() const { return source->label() + "=" + percent_encode(value); }
};

// The sources that the parts of one key may have: one list per part of a composite key.
using key_sources = std::span<const std::vector<identity_source>>;

// What a text means for a key. A part that the text does not name may have any value.
struct identity
{
    std::vector<std::optional<identity_part>> parts; // one per part of the key; they point to the given sources
    std::string complaint;                           // what is wrong, and what would be right; empty on success

    explicit operator bool() const { return complaint.empty(); }
    std::string spelling() const; // in full
};

// Reads an identity in any form that can mean only one. `setting` is what the entry of a map assigns to it, so that a
// complaint can print the whole line that would be right.
identity parse_identity(std::string_view text, key_sources of, std::string_view setting = {});
// Reads a value of one source, whichever key it belongs to. Sources of several keys that read the same place in a
// request are one.
identity parse_identity_of_any(std::string_view text, std::span<const identity_source> of,
                               std::string_view setting = {});

// Returns the shortest form that parse_identity() accepts for this one.
std::string shortest_form(const identity_part& part, key_sources of);

} // namespace headgate::config
