// Makes keys and signs tokens for the tests, with OpenSSL directly and without any tested code.
#pragma once

#include "config/model.hpp"
#include "gateway/identity/token_verifier.hpp"

#include <openssl/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity::testing {

std::string encode_base64url(std::string_view bytes);

// A private key, or a secret. Copies share it.
class signing_key
{
public:
    static signing_key secret(std::string bytes);
    static signing_key rsa(unsigned bits = 2048);
    static signing_key ec(const char* group); // P-256, P-384, P-521, secp256k1
    static signing_key ed25519();

    // Returns the signature as in JWS; for ECDSA r and s at full length.
    std::string sign(config::jwt_algorithm algorithm, std::string_view text) const;
    std::string sign_ecdsa_as_der(std::string_view text) const; // SHA-256

    std::string public_pem() const;
    std::string private_pem() const;
    std::string jwk(std::string_view more = "") const; // `more` is text such as R"(,"kid":"a")"
    const std::string& bytes() const { return secret_; }

private:
    std::string secret_;
    std::shared_ptr<EVP_PKEY> pkey_;
};

// One key of each family, made once because making an RSA key is slow.
const signing_key& key_for(config::jwt_algorithm algorithm);

// `header` and `payload` are JSON text, or any other text that a test sends.
std::string make_token(const signing_key& key, config::jwt_algorithm algorithm, std::string_view header,
                       std::string_view payload);
// With the header {"alg":"..."}.
std::string make_token(const signing_key& key, config::jwt_algorithm algorithm, std::string_view payload);

// A file that is removed with this object.
class temporary_file
{
public:
    explicit temporary_file(std::string_view text);
    ~temporary_file();
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

std::string joined(const std::vector<std::string>& problems);

// Fails the test and prints the problems when there are any.
token_verifier must_load(const config::jwt_config& config);
// Makes a verifier of this key alone: a secret as `secret`, another as a PEM file. Leeway 0.
token_verifier verifier_of(const signing_key& key, std::vector<config::jwt_algorithm> algorithms);
token_verifier verifier_of_jwks(std::string_view text, std::vector<config::jwt_algorithm> algorithms);
// Returns the problems of loading this key set, one per line, with the file called FILE.
std::string jwks_problems(std::string_view text, std::vector<config::jwt_algorithm> algorithms);

inline std::chrono::system_clock::time_point at_second(std::int64_t seconds)
{
    return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

} // namespace headgate::identity::testing
