// Keys compiled to be read from requests: names resolved, references to other keys replaced by their sources, and a tag
// per source, so that equal texts of different sources are different keys. Made once per (re)load.
#pragma once

#include "config/model.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

struct compiled_source
{
    enum class kind : std::uint8_t
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
    kind what = kind::header;
    // The key's text begins with it when this source was present: an API key that looks like an address is not that
    // address. It depends on the kind, with a number only within the kind: adding a source of another kind to the list
    // changes no counter.
    std::string tag;
    std::string name;            // of the header, cookie, parameter, claim
    std::size_t verified_by = 0; // the number of the provider or the table
    bool is_plan = false;        // for a table: its value is the plan instead of the user
    unsigned ipv4_prefix = 32, ipv6_prefix = 64;
    // Whether overrides apply to its values. If a part of a key can be verified, by a signature or a table, overrides
    // do not apply to its unverified sources: a client could write another client's name into a header to get its
    // override.
    bool may_have_overrides = true;
};

struct compiled_key
{
    std::vector<compiled_source> sources; // the first that is present decides
    config::missing_key missing = config::missing_key::anonymous;
};

// Compiles one name of a rule's `key`: a key of the configuration, or a built-in one.
compiled_key compile_key(const config::gateway_config& config, const std::string& name);
// Sets may_have_overrides for all parts of one composite key.
void mark_override_sources(std::span<compiled_key> parts);
// Compiles a list of sources without a name, such as that of the plans.
compiled_key compile_key(const config::gateway_config& config, const std::vector<config::key_source>& sources);

} // namespace headgate
