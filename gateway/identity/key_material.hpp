// Makes verification keys from what files and the configuration hold, and refuses those that are too weak to mean
// anything. A complaint says what is wrong and what would be right, and never repeats the material.
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

// Numbers are big-endian bytes. `algorithms` are those the secret will be used with: it is as long as each digest.
made_key make_hmac_key(std::string secret, const std::vector<jwt_algorithm>& algorithms);
made_key make_rsa_key(std::string_view modulus, std::string_view exponent);
made_key make_ec_key(key_family curve, std::string_view x, std::string_view y);
made_key make_ed25519_key(std::string_view x);

// The one PEM public key in `text`.
made_key make_pem_key(std::string_view text);

} // namespace headgate::identity
