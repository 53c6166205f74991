// Guards against invented identities (`new_identities` of a key), and which sources clients can make up. Pure.
#pragma once

#include "config/identity.hpp"
#include "config/model.hpp"

#include <string>
#include <vector>

namespace headgate::config {

// Returns the rule that a new identity charges: on the client's address, with the limit of the guard.
rule_config as_rule(const std::string& key, const new_identities_config& guard);

// Returns whether a client can present values of this source as it likes, because nothing verifies them.
bool can_be_invented(source_kind kind);

// Returns the keys of the route's chains that have a guard, in the order of their names.
std::vector<std::string> guarded_keys(const route_config& route, const gateway_config& config);

// Returns the guard in words: 100 new identities per hour for each address (IPv4 /32, IPv6 /64).
std::string in_words(const std::string& key, const new_identities_config& guard);

} // namespace headgate::config
