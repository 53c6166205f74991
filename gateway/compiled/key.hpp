// Keys compiled to be read from requests: names resolved, references to other keys replaced by their sources, and a tag
// per source, so that equal texts of different sources are different keys. Made once per (re)load.
#pragma once

#include "config/identity.hpp"
#include "config/model.hpp"
#include "gateway/http/buffer.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

struct compiled_source
{
    config::source_kind what = config::source_kind::header;
    // The key's text begins with it when this source was present: an API key that looks like an address is not that
    // address. It depends on the kind, with a number only within the kind: adding a source of another kind to the list
    // changes no counter.
    std::string tag;
    std::string name;            // of the header, cookie, parameter, claim
    std::size_t verified_by = 0; // the number of the provider or the table
    bool is_plan = false;        // for a table: its value is the plan instead of the user
    unsigned ipv4_prefix = 32, ipv6_prefix = 64;
    std::string label; // as identities are spelled: user/header:X-API-Key
};

struct compiled_key
{
    std::string name;                     // as rules name it
    std::vector<compiled_source> sources; // the first that is present decides
    config::missing_key missing = config::missing_key::anonymous;
    std::string challenges; // the lines of a 401 that say which credentials are accepted (RFC 9110 §11.6.1)

    bool takes(config::source_kind what) const; // one of the sources is of that kind
};

// Compiles one name of a rule's `key`: a key of the configuration, or a built-in one.
compiled_key compile_key(const config::gateway_config& config, const std::string& name);
// Compiles a list of sources without a name, such as that of the plans.
compiled_key compile_key(const config::gateway_config& config, const std::vector<config::key_source>& sources);

// Appends the identity that the text of a key stands for, in its one spelling (config/identity.hpp). Of a header, a
// cookie and a query parameter only the name: the value may be a credential, which no log shows.
void append_identity(http::byte_buffer& out, std::span<const compiled_key> key, std::string_view text);

} // namespace headgate
