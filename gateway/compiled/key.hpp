// Keys of the configuration made ready to be read from requests: names resolved, keys that name other keys written out,
// and what tells the texts of different sources apart. Made once a (re)load.
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
    // What the key's text begins with when this source was present: an API key that reads like an address is not that
    // address. By kind, and numbered only within it: another source in the list changes nobody's counter.
    std::string tag;
    std::string name;            // of the header, cookie, parameter, claim
    std::size_t verified_by = 0; // the number of the provider or the table
    bool says_plan = false;      // a table's: the plan in place of the user
    unsigned ipv4_prefix = 32, ipv6_prefix = 64;
    // Whether an override may be meant for its values. Where some part of a key can be vouched for, by a signature or a
    // table, what anyone can write into a header is not: it would buy another's plan by their name.
    bool may_have_overrides = true;
};

struct compiled_key
{
    std::vector<compiled_source> sources; // the first that is present
    config::missing_key missing = config::missing_key::anonymous;
};

// One name of a rule's `key`: a key of the configuration, or a built-in one.
compiled_key compile_key(const config::gateway_config& config, const std::string& name);
// For all parts of one composite key.
void mark_override_sources(std::span<compiled_key> parts);
// The same for a list of sources that has no name, such as that of the plans.
compiled_key compile_key(const config::gateway_config& config, const std::vector<config::key_source>& sources);

} // namespace headgate
