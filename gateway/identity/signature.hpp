// Verification keys and signatures. A key has a family, and an algorithm uses only keys of its own family. This is
// checked here for every caller, so that a public key can never be used as an HMAC secret, nor a curve for another.
#pragma once

#include "config/choices.hpp"

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::identity {

using config::jwt_algorithm;

enum class key_family : std::uint8_t
{
    hmac,
    rsa,
    p256,
    p384,
    p521,
    ed25519
};

key_family family_of(jwt_algorithm algorithm);
std::string_view describe(key_family family);     // "an RSA key"
std::size_t coordinate_size(key_family curve);    // in bytes; P-521 has 66
std::size_t digest_size(jwt_algorithm algorithm); // in bytes; 64 for EdDSA

// Immutable, so any number of threads may verify with one key.
struct verification_key
{
    key_family family = key_family::hmac;
    std::string secret;                // hmac
    std::shared_ptr<EVP_PKEY> pkey;    // the other families
    std::optional<std::string> id;     // a JWK's `kid`
    std::optional<jwt_algorithm> only; // a JWK's `alg`

    bool fits(jwt_algorithm algorithm) const { return family == family_of(algorithm) && (!only || *only == algorithm); }
};

// Returns whether the signature is valid; false for a key of another family. Leaves OpenSSL's error queue unchanged,
// which TLS on this thread reads.
bool verify_signature(const verification_key& key, jwt_algorithm algorithm, std::string_view signed_text,
                      std::string_view signature);

} // namespace headgate::identity
