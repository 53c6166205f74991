#include "gateway/identity/key_material.hpp"

#include "gateway/identity/openssl.hpp"

#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <utility>

namespace headgate::identity {

namespace {

constexpr int weakest_rsa = 2048;   // bits
constexpr int longest_rsa = 16'384; // the longest that OpenSSL verifies

std::string_view group_of(key_family curve)
{
    return curve == key_family::p256 ? "prime256v1" : curve == key_family::p384 ? "secp384r1" : "secp521r1";
}

std::optional<key_family> find_curve(const EVP_PKEY* pkey)
{
    std::array<char, 64> name{};
    std::size_t size = 0;
    if (EVP_PKEY_get_group_name(pkey, name.data(), name.size(), &size) == 1)
        for (const auto curve : {key_family::p256, key_family::p384, key_family::p521})
            if (std::string_view(name.data(), size) == group_of(curve))
                return curve;
    return std::nullopt;
}

// Checks a public key: its family, its strength, and whether its numbers are valid.
made_key finish(EVP_PKEY* made)
{
    const std::shared_ptr<EVP_PKEY> pkey(made, EVP_PKEY_free);
    verification_key key;
    key.pkey = pkey;
    if (const auto type = EVP_PKEY_get_base_id(pkey.get()); type == EVP_PKEY_RSA) {
        key.family = key_family::rsa;
        const auto bits = EVP_PKEY_get_bits(pkey.get());
        if (bits < weakest_rsa || bits > longest_rsa)
            return {{},
                    "this RSA key has " + std::to_string(bits) + " bits; it needs " + std::to_string(weakest_rsa) +
                        " to " + std::to_string(longest_rsa)};
    } else if (type == EVP_PKEY_EC) {
        const auto curve = find_curve(pkey.get());
        if (!curve)
            return {{}, "this EC key is on a curve that JWS does not use; P-256, P-384 and P-521 are the ones"};
        key.family = *curve;
    } else if (type == EVP_PKEY_ED25519) {
        key.family = key_family::ed25519;
    } else {
        return {{}, "this kind of key verifies no token; RSA, EC and Ed25519 keys do"};
    }
    const openssl_ptr<EVP_PKEY_CTX, EVP_PKEY_CTX_free> check(EVP_PKEY_CTX_new(pkey.get(), nullptr));
    if (!check || EVP_PKEY_public_check(check.get()) != 1)
        return {{}, "the numbers of this key do not match; export it again"};
    return {std::move(key), {}};
}

made_key from_parameters(const char* type, OSSL_PARAM_BLD* parts)
{
    const openssl_ptr<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(parts));
    const openssl_ptr<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
    EVP_PKEY* made = nullptr;
    if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1)
        return {{}, "the numbers of this key are not a valid key; export it again"};
    return finish(made);
}

using parameter_list = openssl_ptr<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;

// Returns the label of each PEM block: the text between `-----BEGIN ` and `-----`.
std::vector<std::string_view> pem_labels(std::string_view text)
{
    constexpr std::string_view begin = "-----BEGIN ";
    std::vector<std::string_view> labels;
    for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
        at += begin.size();
        labels.push_back(text.substr(at, text.find("-----", at) - at));
    }
    return labels;
}

std::string complain_of_label(std::string_view label)
{
    if (label == "CERTIFICATE")
        return "this is a certificate; extract its key with `openssl x509 -pubkey -noout`";
    if (label == "RSA PUBLIC KEY")
        return "this is an RSA key in its old form; convert it with `openssl rsa -RSAPublicKey_in -pubout`";
    if (label.ends_with("PRIVATE KEY"))
        return "this is a private key, which is not needed here; make the public key with `openssl pkey -pubout`";
    return "this is not a public key; the file must begin with -----BEGIN PUBLIC KEY-----";
}

} // namespace

made_key make_hmac_key(std::string secret, const std::vector<jwt_algorithm>& algorithms)
{
    // A public key is public: used as a secret, it would let every client sign tokens.
    if (secret.find("-----BEGIN ") != std::string::npos)
        return {{}, "this is a PEM key, not a secret; give a file with it as `public_key`"};
    if (secret.size() > 65'536)
        return {{}, "this secret is longer than 64 KiB; 64 random bytes are enough"};
    for (const auto algorithm : algorithms)
        if (family_of(algorithm) == key_family::hmac && secret.size() < digest_size(algorithm))
            return {{},
                    "a secret of " + std::to_string(secret.size()) + " bytes is too short for " +
                        std::string(config::name_of(algorithm)) + "; it needs " +
                        std::to_string(digest_size(algorithm)) + " or more random bytes"};
    verification_key key;
    key.family = key_family::hmac;
    key.secret = std::move(secret);
    return {std::move(key), {}};
}

made_key make_rsa_key(std::string_view modulus, std::string_view exponent)
{
    const quiet_errors quiet;
    const auto n = to_bignum(modulus), e = to_bignum(exponent);
    const parameter_list parts(OSSL_PARAM_BLD_new());
    if (!parts || !n || !e || OSSL_PARAM_BLD_push_BN(parts.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
        OSSL_PARAM_BLD_push_BN(parts.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
        return {{}, "the numbers of this key are not a valid key; export it again"};
    return from_parameters("RSA", parts.get());
}

made_key make_ec_key(key_family curve, std::string_view x, std::string_view y)
{
    const quiet_errors quiet;
    const auto size = coordinate_size(curve);
    if (x.size() != size || y.size() != size)
        return {{}, "`x` and `y` of " + std::string(describe(curve)) + " have " + std::to_string(size) + " bytes each"};
    const auto group = group_of(curve);
    const auto point = '\x04' + std::string(x) + std::string(y); // 4: both coordinates follow
    const parameter_list parts(OSSL_PARAM_BLD_new());
    if (!parts ||
        OSSL_PARAM_BLD_push_utf8_string(parts.get(), OSSL_PKEY_PARAM_GROUP_NAME, group.data(), group.size()) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(parts.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1)
        return {{}, "the numbers of this key are not a valid key; export it again"};
    return from_parameters("EC", parts.get());
}

made_key make_ed25519_key(std::string_view x)
{
    const quiet_errors quiet;
    auto* const made = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(x), x.size());
    if (!made)
        return {{}, "`x` of an Ed25519 key has 32 bytes"};
    return finish(made);
}

made_key make_pem_key(std::string_view text)
{
    const quiet_errors quiet;
    const auto labels = pem_labels(text);
    if (labels.size() > 1)
        return {{},
                "there are " + std::to_string(labels.size()) +
                    " PEM blocks; only one key is read here, use `jwks` for several"};
    if (labels.empty() || labels.front() != "PUBLIC KEY")
        return {{}, complain_of_label(labels.empty() ? "" : labels.front())};
    const openssl_ptr<BIO, BIO_free> source(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    auto* const made = source ? PEM_read_bio_PUBKEY(source.get(), nullptr, nullptr, nullptr) : nullptr;
    if (!made)
        return {{}, "the PEM block is damaged; export the key again with `openssl pkey -pubout`"};
    return finish(made);
}

} // namespace headgate::identity
