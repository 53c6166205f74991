// Loads the keys that an entry of `jwt` names: its secret, its PEM file or its key set.
#pragma once

#include "config/model.hpp"
#include "gateway/identity/jwks.hpp"

namespace headgate::identity {

// The number of keys per family. A token without `kid` is verified with every key of its family, so this bounds the
// cost of a token.
inline constexpr std::size_t most_keys_of_a_family = 16;

// Loads keys from the configuration and from files. Blocks, so call it only at start-up and reload. Reports all
// problems at once, and returns keys only if there are none.
key_set load_token_keys(const config::jwt_config& config);

} // namespace headgate::identity
