// Makes verification keys from the contents of files and of the configuration, and refuses keys that are too weak. A
// complaint states the error and the fix, and never repeats the key.
#pragma once

#include "gateway/identity/signature.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity {

struct made_key
{
    std::optional<verification_key> key;
    std::string complaint; // empty when there is a key
};

// Numbers are big-endian bytes. `algorithms` are those that the secret is used with: it must be at least as long as
// each digest.
made_key make_hmac_key(std::string secret, const std::vector<jwt_algorithm>& algorithms);
made_key make_rsa_key(std::string_view modulus, std::string_view exponent);
made_key make_ec_key(key_family curve, std::string_view x, std::string_view y);
made_key make_ed25519_key(std::string_view x);

// Makes a key of the only PEM public key in `text`.
made_key make_pem_key(std::string_view text);

} // namespace headgate::identity
