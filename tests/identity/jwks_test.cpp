// Key sets: which key verifies a token, which keys are skipped, and the problems of invalid keys.
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;
namespace config = headgate::config;

namespace {

constexpr auto HS256 = jwt_algorithm::HS256;
constexpr auto RS256 = jwt_algorithm::RS256;
constexpr auto PS256 = jwt_algorithm::PS256;
constexpr auto ES256 = jwt_algorithm::ES256;

std::string set_of(std::initializer_list<std::string> keys)
{
    std::string text;
    for (const auto& key : keys)
        text += (text.empty() ? "" : ",") + key;
    return R"({"keys":[)" + text + "]}";
}

std::string header(jwt_algorithm algorithm, std::string_view kid)
{
    return R"({"alg":")" + std::string(config::name_of(algorithm)) + R"(","kid":")" + std::string(kid) + "\"}";
}

std::string_view state(const token_verifier& verifier, std::string_view token)
{
    return name_of(verifier.verify(token, at_second(0)).state);
}

} // namespace

TEST_CASE("kid: a token that names a key is verified with that key only")
{
    const auto a = signing_key::ec("P-256"), b = signing_key::ec("P-256");
    const auto verifier = verifier_of_jwks(set_of({a.jwk(R"(,"kid":"a")"), b.jwk(R"(,"kid":"b")")}), {ES256});
    CHECK(state(verifier, make_token(a, ES256, header(ES256, "a"), "{}")) == "valid");
    CHECK(state(verifier, make_token(b, ES256, header(ES256, "b"), "{}")) == "valid");
    CHECK(state(verifier, make_token(a, ES256, header(ES256, "b"), "{}")) == "bad_signature");
    CHECK(state(verifier, make_token(a, ES256, header(ES256, "c"), "{}")) == "unknown_key");
    CHECK(state(verifier, make_token(a, ES256, header(ES256, "A"), "{}")) == "unknown_key");
    CHECK(state(verifier, make_token(a, ES256, header(ES256, ""), "{}")) == "unknown_key");
}

TEST_CASE("kid: a token without a key name is verified with each key of its family")
{
    const auto a = signing_key::ec("P-256"), b = signing_key::ec("P-256"), stranger = signing_key::ec("P-256");
    const auto verifier = verifier_of_jwks(
        set_of({key_for(RS256).jwk(R"(,"kid":"r")"), a.jwk(R"(,"kid":"a")"), b.jwk()}), {ES256, RS256});
    CHECK(state(verifier, make_token(a, ES256, "{}")) == "valid");
    CHECK(state(verifier, make_token(b, ES256, "{}")) == "valid");
    CHECK(state(verifier, make_token(key_for(RS256), RS256, "{}")) == "valid");
    CHECK(state(verifier, make_token(stranger, ES256, "{}")) == "bad_signature");
}

TEST_CASE("kid: a key without a name matches any name if it is the only key, otherwise none")
{
    const auto a = signing_key::ec("P-256"), b = signing_key::ec("P-256");
    const auto token = make_token(a, ES256, header(ES256, "whatever"), "{}");
    CHECK(state(verifier_of(a, {ES256}), token) == "valid");
    CHECK(state(verifier_of_jwks(set_of({a.jwk()}), {ES256}), token) == "valid");
    CHECK(state(verifier_of_jwks(set_of({a.jwk(), b.jwk()}), {ES256}), token) == "unknown_key");
    CHECK(state(verifier_of_jwks(set_of({a.jwk(R"(,"kid":"a")")}), {ES256}), token) == "unknown_key");
}

TEST_CASE("kid: a key of another family is not used, even if it has the name")
{
    const auto set = set_of({key_for(RS256).jwk(R"(,"kid":"r")"), key_for(HS256).jwk(R"(,"kid":"h")")});
    const auto verifier = verifier_of_jwks(set, {RS256, HS256});
    CHECK(state(verifier, make_token(key_for(HS256), HS256, header(HS256, "h"), "{}")) == "valid");
    CHECK(state(verifier, make_token(key_for(HS256), HS256, header(HS256, "r"), "{}")) == "unknown_key");
    CHECK(state(verifier, make_token(key_for(RS256), RS256, header(RS256, "h"), "{}")) == "unknown_key");
}

TEST_CASE("key set: a key with `alg` is used with that algorithm only")
{
    const auto verifier = verifier_of_jwks(set_of({key_for(RS256).jwk(R"(,"alg":"PS256")")}), {RS256, PS256});
    CHECK(state(verifier, make_token(key_for(RS256), PS256, "{}")) == "valid");
    CHECK(state(verifier, make_token(key_for(RS256), RS256, "{}")) == "unknown_key");
}

TEST_CASE("key set: keys with another use, type or algorithm are skipped")
{
    const auto good = key_for(ES256).jwk();
    const auto token = make_token(key_for(ES256), ES256, "{}");
    for (const std::string& other :
         {signing_key::ec("P-256").jwk(R"(,"use":"enc")"), signing_key::ec("P-256").jwk(R"(,"key_ops":["sign"])"),
          signing_key::ec("P-256").jwk(R"(,"alg":"ECDH-ES")"), std::string(R"({"kty":"new"})"),
          std::string(R"({"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"})"),
          std::string(R"({"kty":"OKP","crv":"X25519","x":"AA"})"),
          std::string(R"({"kty":"RSA","n":"AQAB","e":"AQAB","use":"enc"})"), key_for(RS256).jwk()}) {
        CAPTURE(other);
        CHECK(state(verifier_of_jwks(set_of({other, good}), {ES256}), token) == "valid");
        CHECK(jwks_problems(set_of({other}), {ES256}) ==
              "FILE: no key in it verifies ES256; check each key's `kty`, `crv`, `alg`, `use` and `key_ops`");
    }
    for (const char* more : {R"(,"use":"sig")", R"(,"key_ops":["sign","verify"])", R"(,"alg":"ES256","x5t":"?")"})
        CHECK(state(verifier_of_jwks(set_of({key_for(ES256).jwk(more)}), {ES256}), token) == "valid");
}

TEST_CASE("key set: every invalid key is a separate problem, and keys are not shown")
{
    const auto short_secret = signing_key::secret("hunter2");
    const auto set = set_of({R"({"kty":"RSA","e":"AQAB","kid":"a"})", R"({"kty":"RSA","n":"AQ==","e":"AQAB"})",
                             signing_key::rsa(1024).jwk(), short_secret.jwk(R"(,"kid":"h")"), "7", R"({"n":"AQ"})",
                             R"({"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"})", key_for(ES256).jwk(R"(,"kid":5)"),
                             signing_key::secret(key_for(RS256).public_pem()).jwk()});
    CHECK(jwks_problems(set, {RS256, HS256, ES256}) ==
          "FILE: keys[0] (kid \"a\"): `n` and `e` must be base64url without padding\n"
          "FILE: keys[1]: `n` and `e` must be base64url without padding\n"
          "FILE: keys[2]: this RSA key has 1024 bits; it needs 2048 to 16384\n"
          "FILE: keys[3] (kid \"h\"): a secret of 7 bytes is too short for HS256; it needs 32 or more random bytes\n"
          "FILE: keys[4]: this is not a key; a key is an object with at least `kty`\n"
          "FILE: keys[5]: this is not a key; a key is an object with at least `kty`\n"
          "FILE: keys[6]: `x` and `y` of an EC key on P-256 have 32 bytes each\n"
          "FILE: keys[7]: `kid` must be a string\n"
          "FILE: keys[8]: this is a PEM key, not a secret; give a file with it as `public_key`");
}

TEST_CASE("key set: a point off its curve, an even modulus and an exponent of one are refused")
{
    const auto zeros = encode_base64url(std::string(32, '\0')), ones = encode_base64url(std::string(32, '\1'));
    CHECK(jwks_problems(set_of({R"({"kty":"EC","crv":"P-256","x":")" + ones + R"(","y":")" + zeros + "\"}"}),
                        {ES256}) == "FILE: keys[0]: the numbers of this key are not a valid key; export it again");
    const auto even = encode_base64url(std::string(255, '\xff') + '\xfe'),
               odd = encode_base64url(std::string(256, '\xff'));
    CHECK(jwks_problems(set_of({R"({"kty":"RSA","e":"AQAB","n":")" + even + "\"}"}), {RS256}) ==
          "FILE: keys[0]: the numbers of this key do not match; export it again");
    CHECK(jwks_problems(set_of({R"({"kty":"RSA","e":"AQ","n":")" + odd + "\"}"}), {RS256}) ==
          "FILE: keys[0]: the numbers of this key do not match; export it again");
    CHECK(jwks_problems(set_of({R"({"kty":"OKP","crv":"Ed25519","x":"AQ"})"}), {jwt_algorithm::EdDSA}) ==
          "FILE: keys[0]: `x` of an Ed25519 key has 32 bytes");
}

TEST_CASE("key set: invalid JSON is reported with its line")
{
    const std::string right = "; a key set is {\"keys\": [ ... ]}";
    CHECK(jwks_problems("", {RS256}) == "FILE:1: this is not JSON" + right);
    CHECK(jwks_problems("{\n\"keys\":\n[,]}", {RS256}) == "FILE:3: this is not JSON" + right);
    CHECK(jwks_problems("[]", {RS256}) == "FILE: there is no list of keys" + right);
    CHECK(jwks_problems("{}", {RS256}) == "FILE: there is no list of keys" + right);
    CHECK(jwks_problems(R"({"keys":{}})", {RS256}) == "FILE: there is no list of keys" + right);
    CHECK(jwks_problems(R"({"keys":[],"keys":[]})", {RS256}) ==
          "FILE: the name \"keys\" occurs twice in one object" + right);
    CHECK(jwks_problems(std::string(100'000, '['), {RS256}) == "FILE: this is nested more than 16 levels deep" + right);
    CHECK(jwks_problems(R"({"keys":[]})", {RS256, ES256}) ==
          "FILE: no key in it verifies RS256, ES256; check each key's `kty`, `crv`, `alg`, `use` and `key_ops`");
}

TEST_CASE("key set: sixteen keys of a family are allowed, seventeen are a problem")
{
    std::string keys;
    for (int i = 0; i < 15; ++i)
        keys += signing_key::ed25519().jwk() + ",";
    const auto last = signing_key::ed25519();
    const auto sixteen = R"({"keys":[)" + keys + last.jwk() + "]}";
    CHECK(state(verifier_of_jwks(sixteen, {jwt_algorithm::EdDSA}), make_token(last, jwt_algorithm::EdDSA, "{}")) ==
          "valid");
    CHECK(jwks_problems(R"({"keys":[)" + keys + last.jwk() + "," + last.jwk() + "]}", {jwt_algorithm::EdDSA}) ==
          "FILE: there are 17 keys of one kind; at most 16 may be tried on a token, so remove those no longer in use");
}
