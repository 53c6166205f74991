#include "gateway/identity/signature.hpp"

#include "gateway/identity/openssl.hpp"

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <array>

namespace headgate::identity {

namespace {

enum class scheme : std::uint8_t
{
    hmac,
    rsa_pkcs1,
    rsa_pss,
    ecdsa,
    eddsa
};

struct algorithm_facts
{
    scheme how;
    key_family family;
    std::size_t digest;
};

// In the order of jwt_algorithm.
constexpr std::array<algorithm_facts, 13> facts = {{
    {scheme::hmac, key_family::hmac, 32},
    {scheme::hmac, key_family::hmac, 48},
    {scheme::hmac, key_family::hmac, 64},
    {scheme::rsa_pkcs1, key_family::rsa, 32},
    {scheme::rsa_pkcs1, key_family::rsa, 48},
    {scheme::rsa_pkcs1, key_family::rsa, 64},
    {scheme::rsa_pss, key_family::rsa, 32},
    {scheme::rsa_pss, key_family::rsa, 48},
    {scheme::rsa_pss, key_family::rsa, 64},
    {scheme::ecdsa, key_family::p256, 32},
    {scheme::ecdsa, key_family::p384, 48},
    {scheme::ecdsa, key_family::p521, 64},
    {scheme::eddsa, key_family::ed25519, 64},
}};
static_assert(facts.size() == config::names_of(jwt_algorithm{}).size());

const algorithm_facts& facts_of(jwt_algorithm algorithm) { return facts[static_cast<std::size_t>(algorithm)]; }

const EVP_MD* digest_of(const algorithm_facts& algorithm)
{
    switch (algorithm.digest) {
    case 32:
        return EVP_sha256();
    case 48:
        return EVP_sha384();
    default:
        return EVP_sha512();
    }
}

bool verify_hmac(const verification_key& key, const algorithm_facts& algorithm, std::string_view text,
                 std::string_view signature)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> expected;
    unsigned size = 0;
    if (!HMAC(digest_of(algorithm), key.secret.data(), static_cast<int>(key.secret.size()), bytes_of(text), text.size(),
              expected.data(), &size))
        return false;
    // Compares in constant time, so that the time does not reveal how much of a guess was right.
    return signature.size() == size && CRYPTO_memcmp(signature.data(), expected.data(), size) == 0;
}

bool use_pss(EVP_PKEY_CTX* context, const EVP_MD* digest)
{
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0 &&
           EVP_PKEY_CTX_set_rsa_mgf1_md(context, digest) > 0 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0;
}

bool verify_with(const verification_key& key, const algorithm_facts& algorithm, std::string_view text,
                 std::string_view signature)
{
    // One context per call: none is shared, so no lock is needed.
    const openssl_ptr<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
    const EVP_MD* digest =
        algorithm.how == scheme::eddsa ? nullptr : digest_of(algorithm); // Ed25519 includes its own digest
    EVP_PKEY_CTX* options = nullptr;
    return context && EVP_DigestVerifyInit(context.get(), &options, digest, nullptr, key.pkey.get()) == 1 &&
           (algorithm.how != scheme::rsa_pss || use_pss(options, digest)) &&
           EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(text), text.size()) == 1;
}

// Converts an ECDSA signature from JWS (r and s, each at full length) to the DER that OpenSSL needs. Returns an empty
// string when the length is wrong.
std::string to_der(key_family family, std::string_view raw)
{
    const auto half = coordinate_size(family);
    if (raw.size() != 2 * half)
        return {};
    const openssl_ptr<ECDSA_SIG, ECDSA_SIG_free> pair(ECDSA_SIG_new());
    auto r = to_bignum(raw.substr(0, half)), s = to_bignum(raw.substr(half));
    if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1)
        return {};
    static_cast<void>(r.release()); // the pair owns both
    static_cast<void>(s.release());
    unsigned char* written = nullptr;
    const int size = i2d_ECDSA_SIG(pair.get(), &written);
    std::string der = size > 0 ? std::string(reinterpret_cast<char*>(written), static_cast<std::size_t>(size)) : "";
    OPENSSL_free(written);
    return der;
}

} // namespace

key_family family_of(jwt_algorithm algorithm) { return facts_of(algorithm).family; }

std::size_t coordinate_size(key_family curve)
{
    return curve == key_family::p256 ? 32 : curve == key_family::p384 ? 48 : 66;
}

std::size_t digest_size(jwt_algorithm algorithm) { return facts_of(algorithm).digest; }

std::string_view describe(key_family family)
{
    constexpr std::array<std::string_view, 6> words = {"an HMAC secret",     "an RSA key",         "an EC key on P-256",
                                                       "an EC key on P-384", "an EC key on P-521", "an Ed25519 key"};
    return words[static_cast<std::size_t>(family)];
}

bool verify_signature(const verification_key& key, jwt_algorithm algorithm, std::string_view signed_text,
                      std::string_view signature)
{
    if (!key.fits(algorithm))
        return false;
    const quiet_errors quiet;
    const auto& known = facts_of(algorithm);
    if (known.how == scheme::hmac)
        return verify_hmac(key, known, signed_text, signature);
    if (known.how != scheme::ecdsa)
        return verify_with(key, known, signed_text, signature);
    const auto der = to_der(key.family, signature);
    return !der.empty() && verify_with(key, known, signed_text, der);
}

} // namespace headgate::identity
