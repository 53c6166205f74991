#include "tests/identity/support/signer.hpp"

#include "gateway/identity/openssl.hpp"

#include <doctest/doctest.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace headgate::identity::testing {

namespace {

using config::jwt_algorithm;

std::shared_ptr<EVP_PKEY> owned(EVP_PKEY* key)
{
    REQUIRE(key != nullptr);
    return {key, EVP_PKEY_free};
}

bool is_between(jwt_algorithm algorithm, jwt_algorithm first, jwt_algorithm last)
{
    return algorithm >= first && algorithm <= last;
}

const EVP_MD* digest_of(jwt_algorithm algorithm)
{
    if (algorithm == jwt_algorithm::EdDSA)
        return nullptr;
    const auto name = config::name_of(algorithm);
    return name.ends_with("256") ? EVP_sha256() : name.ends_with("384") ? EVP_sha384() : EVP_sha512();
}

std::string sign_with(EVP_PKEY* key, const EVP_MD* digest, bool pss, std::string_view text)
{
    const openssl_ptr<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* options = nullptr;
    REQUIRE(EVP_DigestSignInit(context.get(), &options, digest, nullptr, key) == 1);
    if (pss) {
        REQUIRE(EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) > 0);
        REQUIRE(EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) > 0);
    }
    std::size_t size = 0;
    REQUIRE(EVP_DigestSign(context.get(), nullptr, &size, bytes_of(text), text.size()) == 1);
    std::string signature(size, '\0');
    auto* out = reinterpret_cast<unsigned char*>(signature.data());
    REQUIRE(EVP_DigestSign(context.get(), out, &size, bytes_of(text), text.size()) == 1);
    signature.resize(size);
    return signature;
}

std::string big_endian(const BIGNUM* number, std::size_t size)
{
    std::string bytes(size, '\0');
    REQUIRE(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) >= 0);
    return bytes;
}

std::size_t coordinate_bytes(const EVP_PKEY* key) { return (static_cast<std::size_t>(EVP_PKEY_get_bits(key)) + 7) / 8; }

std::string raw_from_der(const EVP_PKEY* key, const std::string& der)
{
    const auto* at = bytes_of(der);
    const openssl_ptr<ECDSA_SIG, ECDSA_SIG_free> pair(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
    REQUIRE(pair);
    const auto size = coordinate_bytes(key);
    return big_endian(ECDSA_SIG_get0_r(pair.get()), size) + big_endian(ECDSA_SIG_get0_s(pair.get()), size);
}

std::string number_of(const EVP_PKEY* key, const char* name, std::size_t size = 0)
{
    BIGNUM* number = nullptr;
    REQUIRE(EVP_PKEY_get_bn_param(key, name, &number) == 1);
    const bignum owner(number);
    return encode_base64url(big_endian(number, size ? size : static_cast<std::size_t>(BN_num_bytes(number))));
}

template <class Write>
std::string pem(Write write)
{
    const openssl_ptr<BIO, BIO_free> out(BIO_new(BIO_s_mem()));
    REQUIRE(write(out.get()) == 1);
    char* text = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &text);
    return {text, static_cast<std::size_t>(size)};
}

} // namespace

std::string encode_base64url(std::string_view bytes)
{
    std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const auto size =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes_of(bytes), static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(size));
    text.erase(std::min(text.find('='), text.size()));
    std::replace(text.begin(), text.end(), '+', '-');
    std::replace(text.begin(), text.end(), '/', '_');
    return text;
}

signing_key signing_key::secret(std::string bytes)
{
    signing_key key;
    key.secret_ = std::move(bytes);
    return key;
}

signing_key signing_key::rsa(unsigned bits)
{
    signing_key key;
    key.pkey_ = owned(EVP_RSA_gen(bits));
    return key;
}

signing_key signing_key::ec(const char* group)
{
    signing_key key;
    key.pkey_ = owned(EVP_EC_gen(group));
    return key;
}

signing_key signing_key::ed25519()
{
    signing_key key;
    key.pkey_ = owned(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
    return key;
}

std::string signing_key::sign(jwt_algorithm algorithm, std::string_view text) const
{
    if (algorithm <= jwt_algorithm::HS512) {
        std::string mac(EVP_MAX_MD_SIZE, '\0');
        unsigned size = 0;
        HMAC(digest_of(algorithm), secret_.data(), static_cast<int>(secret_.size()), bytes_of(text), text.size(),
             reinterpret_cast<unsigned char*>(mac.data()), &size);
        mac.resize(size);
        return mac;
    }
    const bool pss = is_between(algorithm, jwt_algorithm::PS256, jwt_algorithm::PS512);
    const auto signature = sign_with(pkey_.get(), digest_of(algorithm), pss, text);
    return is_between(algorithm, jwt_algorithm::ES256, jwt_algorithm::ES512) ? raw_from_der(pkey_.get(), signature)
                                                                             : signature;
}

std::string signing_key::sign_ecdsa_as_der(std::string_view text) const
{
    return sign_with(pkey_.get(), EVP_sha256(), false, text);
}

std::string signing_key::public_pem() const
{
    return pem([&](BIO* out) { return PEM_write_bio_PUBKEY(out, pkey_.get()); });
}

std::string signing_key::private_pem() const
{
    return pem(
        [&](BIO* out) { return PEM_write_bio_PrivateKey(out, pkey_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string signing_key::jwk(std::string_view more) const
{
    const auto end = std::string(more) + "}";
    if (!pkey_)
        return R"({"kty":"oct","k":")" + encode_base64url(secret_) + "\"" + end;
    if (EVP_PKEY_get_base_id(pkey_.get()) == EVP_PKEY_RSA)
        return R"({"kty":"RSA","n":")" + number_of(pkey_.get(), OSSL_PKEY_PARAM_RSA_N) + R"(","e":")" +
               number_of(pkey_.get(), OSSL_PKEY_PARAM_RSA_E) + "\"" + end;
    if (EVP_PKEY_get_base_id(pkey_.get()) == EVP_PKEY_ED25519) {
        std::string x(32, '\0');
        auto size = x.size();
        REQUIRE(EVP_PKEY_get_raw_public_key(pkey_.get(), reinterpret_cast<unsigned char*>(x.data()), &size) == 1);
        return R"({"kty":"OKP","crv":"Ed25519","x":")" + encode_base64url(x) + "\"" + end;
    }
    const auto size = coordinate_bytes(pkey_.get());
    return R"({"kty":"EC","crv":"P-)" + std::to_string(EVP_PKEY_get_bits(pkey_.get())) + R"(","x":")" +
           number_of(pkey_.get(), OSSL_PKEY_PARAM_EC_PUB_X, size) + R"(","y":")" +
           number_of(pkey_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, size) + "\"" + end;
}

const signing_key& key_for(jwt_algorithm algorithm)
{
    static const std::map<key_family, signing_key> keys = {
        {key_family::hmac, signing_key::secret("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")},
        {key_family::rsa, signing_key::rsa()},
        {key_family::p256, signing_key::ec("P-256")},
        {key_family::p384, signing_key::ec("P-384")},
        {key_family::p521, signing_key::ec("P-521")},
        {key_family::ed25519, signing_key::ed25519()},
    };
    return keys.at(family_of(algorithm));
}

std::string make_token(const signing_key& key, jwt_algorithm algorithm, std::string_view header,
                       std::string_view payload)
{
    const auto text = encode_base64url(header) + "." + encode_base64url(payload);
    return text + "." + encode_base64url(key.sign(algorithm, text));
}

std::string make_token(const signing_key& key, jwt_algorithm algorithm, std::string_view payload)
{
    return make_token(key, algorithm, R"({"alg":")" + std::string(config::name_of(algorithm)) + "\"}", payload);
}

temporary_file::temporary_file(std::string_view text)
{
    auto name = (std::filesystem::temp_directory_path() / "headgate-identity-XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    REQUIRE(descriptor >= 0);
    ::close(descriptor);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
}

temporary_file::~temporary_file()
{
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

std::string joined(const std::vector<std::string>& problems)
{
    std::string text;
    for (const auto& problem : problems)
        text += (text.empty() ? "" : "\n") + problem;
    return text;
}

token_verifier must_load(const config::jwt_config& config)
{
    auto loaded = token_verifier::load(config);
    INFO(joined(loaded.problems));
    REQUIRE(loaded.verifier);
    return std::move(*loaded.verifier);
}

token_verifier verifier_of(const signing_key& key, std::vector<jwt_algorithm> algorithms)
{
    config::jwt_config config;
    config.algorithms = std::move(algorithms);
    config.leeway = {};
    if (!key.bytes().empty()) {
        config.secret = config::secret(key.bytes());
        return must_load(config);
    }
    const temporary_file file(key.public_pem());
    config.public_key = file.path();
    return must_load(config);
}

token_verifier verifier_of_jwks(std::string_view text, std::vector<jwt_algorithm> algorithms)
{
    const temporary_file file(text);
    config::jwt_config config;
    config.algorithms = std::move(algorithms);
    config.leeway = {};
    config.jwks = file.path();
    return must_load(config);
}

std::string jwks_problems(std::string_view text, std::vector<jwt_algorithm> algorithms)
{
    const temporary_file file(text);
    config::jwt_config config;
    config.algorithms = std::move(algorithms);
    config.jwks = file.path();
    auto problems = joined(token_verifier::load(config).problems);
    for (auto at = problems.find(file.path()); at != std::string::npos; at = problems.find(file.path()))
        problems.replace(at, file.path().size(), "FILE");
    return problems;
}

} // namespace headgate::identity::testing
