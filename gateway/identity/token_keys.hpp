// Gathers the keys that an entry of `jwt` names: its secret, its PEM file or its key set.
#pragma once

#include "config/model.hpp"
#include "gateway/identity/jwks.hpp"

namespace headgate::identity {

// A token without `kid` is tried with every key of its family: what one token can cost is bounded by this.
inline constexpr std::size_t most_keys_of_a_family = 16;

// Reads files; start-up only. All problems at once; there are keys only if there are none.
key_set load_token_keys(const config::jwt_config& config);

} // namespace headgate::identity
