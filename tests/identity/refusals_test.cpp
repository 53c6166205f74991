// Tokens that must be refused, and their states. A refused token has no claims, so it cannot select a counter (K8).
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;
namespace config = headgate::config;

namespace {

constexpr auto HS256 = jwt_algorithm::HS256;
constexpr auto RS256 = jwt_algorithm::RS256;
constexpr auto ES256 = jwt_algorithm::ES256;
constexpr auto ES384 = jwt_algorithm::ES384;

const std::string good_header = R"({"alg":"HS256"})";
const std::string good_payload = R"({"sub":"alice","iss":"joe","aud":"api","exp":2000,"nbf":1000})";

token_verifier strict_verifier()
{
    config::jwt_config jwt;
    jwt.algorithms = {HS256};
    jwt.secret = config::secret(key_for(HS256).bytes());
    jwt.issuer = "joe";
    jwt.audience = {"api"};
    jwt.leeway = {};
    return must_load(jwt);
}

std::string state(const token_verifier& verifier, std::string_view token, std::int64_t second = 1500)
{
    const auto result = verifier.verify(token, at_second(second));
    CHECK((result.state == token_state::valid || !result.claims.claim_text("sub"))); // K8
    return std::string(name_of(result.state));
}

std::string hs256(std::string_view header, std::string_view payload)
{
    return make_token(key_for(HS256), HS256, header, payload);
}

} // namespace

TEST_CASE("K8: each kind of invalid token has its own state")
{
    const auto other_key = signing_key::secret("another secret, as long as the digest is");
    const struct
    {
        const char* what;
        std::string token;
        const char* state;
    } table[] = {
        {"nothing", hs256(good_header, good_payload), "valid"},
        {"no payload object", hs256(good_header, "[]"), "malformed"},
        {"an algorithm not allowed", make_token(key_for(HS256), jwt_algorithm::HS384, good_payload), "wrong_algorithm"},
        {"signed by another", make_token(other_key, HS256, good_payload), "bad_signature"},
        {"over", hs256(good_header, R"({"iss":"joe","aud":"api","exp":1500})"), "expired"},
        {"not begun", hs256(good_header, R"({"iss":"joe","aud":"api","nbf":1501})"), "not_yet_valid"},
        {"another issuer", hs256(good_header, R"({"iss":"eve","aud":"api"})"), "wrong_issuer"},
        {"another audience", hs256(good_header, R"({"iss":"joe","aud":"web"})"), "wrong_audience"},
    };
    const auto verifier = strict_verifier();
    for (const auto& [what, token, expected] : table) {
        CAPTURE(what);
        CHECK(state(verifier, token) == expected);
    }
    const auto named = verifier_of_jwks(R"({"keys":[)" + key_for(HS256).jwk(R"(,"kid":"a")") + "]}", {HS256});
    CHECK(state(named, hs256(R"({"alg":"HS256","kid":"b"})", "{}")) == "unknown_key");
}

TEST_CASE("K8: text that is not a compact JWS is malformed")
{
    const auto good = hs256(good_header, good_payload);
    const auto first = good.find('.'), last = good.rfind('.');
    const auto verifier = strict_verifier();
    for (const std::string& token :
         {std::string(), std::string("."), std::string(".."), std::string("..."), good.substr(0, last), good + ".",
          good + ".e30", "." + good, good.substr(0, first) + "..." + good.substr(last + 1), good + "=",
          good + "==", good.substr(0, last) + "=" + good.substr(last), good.substr(0, first) + "=" + good.substr(first),
          " " + good, good + " ", good + "\n", good + "+", good + std::string(1, '\0'), "Bearer " + good}) {
        CAPTURE(token);
        CHECK(state(verifier, token) == "malformed");
    }
    CHECK(state(verifier, good.substr(0, last + 1)) == "bad_signature"); // three parts, the last one empty
}

TEST_CASE("K8: a token with unused bits set is malformed, although it decodes to the same bytes")
{
    const auto good = hs256(good_header, good_payload);
    const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    REQUIRE(good.substr(good.rfind('.') + 1).size() % 4 == 3); // 32 bytes leave two bits unused
    auto changed = good;
    changed.back() = digits[digits.find(good.back()) + 1];
    CHECK(state(strict_verifier(), changed) == "malformed");
}

TEST_CASE("K8: a header that is not one object with a string `alg` is malformed")
{
    const auto verifier = strict_verifier();
    for (const char* header :
         {"", "{", "[]", "null", R"("HS256")", "{}", R"({"alg":null})", R"({"alg":["HS256"]})", R"({"alg":256})",
          R"({"alg":"HS256","alg":"HS256"})", R"({"alg":"none","alg":"HS256"})", R"({"alg":"HS256","\u0061lg":"none"})",
          R"({"alg":"HS256","kid":7})", R"({"alg":"HS256","kid":null})", R"({"alg":"HS256","x":{"a":1,"a":2}})",
          R"({"alg":"HS256"} x)"}) {
        CAPTURE(header);
        CHECK(state(verifier, hs256(header, good_payload)) == "malformed");
    }
}

TEST_CASE("K8: a token with `crit` is malformed: no extension is supported")
{
    for (const char* header : {R"({"alg":"HS256","crit":["b64"],"b64":false})", R"({"alg":"HS256","crit":[]})",
                               R"({"alg":"HS256","crit":null})"}) {
        CAPTURE(header);
        CHECK(state(strict_verifier(), hs256(header, good_payload)) == "malformed");
    }
}

TEST_CASE("K8: a signed payload that is not one object, or repeats a claim, is malformed")
{
    const auto verifier = strict_verifier();
    for (const std::string& payload :
         {std::string(), std::string("null"), std::string("7"), std::string("\"joe\""), std::string("[{}]"),
          good_payload + "x", good_payload + good_payload,
          std::string(R"({"sub":"alice","iss":"joe","aud":"api","sub":"bob"})"),
          std::string(R"({"iss":"joe","aud":"api","org":{"id":1,"id":2}})"),
          std::string("{\"iss\":\"joe\",\"aud\":\"api\",\"sub\":\"\xff\"}"),
          R"({"iss":"joe","aud":"api","a":)" + std::string(16, '[') + std::string(16, ']') + "}",
          R"({"iss":"joe","aud":"api","a":)" + std::string(2500, '[') + std::string(2500, ']') + "}"}) {
        CAPTURE(payload);
        CHECK(state(verifier, hs256(good_header, payload)) == "malformed");
    }
    CHECK(state(verifier, hs256(good_header, R"({"iss":"joe","aud":"api","a":)" + std::string(15, '[') +
                                                 std::string(15, ']') + "}")) == "valid");
}

TEST_CASE("K8: a token of 8 KiB is read; a longer one is malformed, even if its signature is valid")
{
    const auto verifier = strict_verifier();
    const auto padded = [&](std::size_t letters) {
        return hs256(good_header, R"({"iss":"joe","aud":"api","x":")" + std::string(letters, 'x') + "\"}");
    };
    std::size_t letters = 6000;
    while (padded(letters + 1).size() <= longest_token)
        ++letters;
    CHECK(padded(letters).size() >= longest_token - 1); // base64 text cannot have every length
    CHECK(state(verifier, padded(letters)) == "valid");
    CHECK(state(verifier, padded(letters + 1)) == "malformed");
    CHECK(state(verifier, padded(1'000'000)) == "malformed");
    CHECK(state(verifier, std::string(1'000'000, '.')) == "malformed");
    CHECK(state(verifier, std::string(1'000'000, 'e')) == "malformed");
}

TEST_CASE("K8: `none` is refused in every spelling, with and without a signature, whatever algorithms are allowed")
{
    std::vector<jwt_algorithm> all;
    for (int i = 0; i <= static_cast<int>(jwt_algorithm::EdDSA); ++i)
        all.push_back(static_cast<jwt_algorithm>(i));
    const auto verifier = verifier_of(key_for(HS256), all);
    for (const std::string name : {"none", "None", "NONE", "nOnE", "", " none", "none ", "hs256", "HS256 ", "HS-256"}) {
        CAPTURE(name);
        const auto signed_token = hs256(R"({"alg":")" + name + "\"}", "{}");
        CHECK(state(verifier, signed_token) == "wrong_algorithm");
        CHECK(state(verifier, signed_token.substr(0, signed_token.rfind('.') + 1)) == "wrong_algorithm");
    }
}

TEST_CASE("K8: a token signed by HMAC with the public key as the secret is refused, whether HS is allowed or not")
{
    const auto& rsa = key_for(RS256);
    const auto forged = make_token(signing_key::secret(rsa.public_pem()), HS256, R"({"sub":"admin"})");
    CHECK(state(verifier_of(rsa, {RS256}), forged) == "wrong_algorithm");
    CHECK(state(verifier_of(rsa, {RS256, HS256}), forged) == "unknown_key");
    const auto both = R"({"keys":[)" + rsa.jwk() + "," + key_for(HS256).jwk() + "]}";
    CHECK(state(verifier_of_jwks(both, {RS256, HS256}), forged) == "bad_signature"); // verified with the secret only
    const auto modulus = make_token(signing_key::secret(rsa.jwk()), HS256, R"({"sub":"admin"})");
    CHECK(state(verifier_of_jwks(both, {RS256, HS256}), modulus) == "bad_signature");
}

TEST_CASE("K8: ECDSA is verified on the curve of its algorithm only")
{
    const auto verifier = verifier_of(key_for(ES256), {ES256, ES384});
    CHECK(state(verifier, make_token(key_for(ES256), ES256, "{}")) == "valid");
    CHECK(state(verifier, make_token(key_for(ES384), ES384, "{}")) == "unknown_key");
    // A P-256 key signs a SHA-384 digest and the header claims ES384.
    CHECK(state(verifier, make_token(key_for(ES256), ES384, "{}")) == "unknown_key");
    const auto both = R"({"keys":[)" + key_for(ES256).jwk() + "," + key_for(ES384).jwk() + "]}";
    CHECK(state(verifier_of_jwks(both, {ES256, ES384}), make_token(key_for(ES256), ES384, "{}")) == "bad_signature");
}

TEST_CASE("K8: an ECDSA signature is r and s at full length: not DER, not shorter, longer or zero")
{
    const auto verifier = verifier_of(key_for(ES256), {ES256});
    const auto text = encode_base64url(R"({"alg":"ES256"})") + "." + encode_base64url("{}");
    const auto with = [&](std::string_view signature) {
        return state(verifier, text + "." + encode_base64url(signature));
    };
    const auto raw = key_for(ES256).sign(ES256, text);
    CHECK(with(raw) == "valid");
    CHECK(with(key_for(ES256).sign_ecdsa_as_der(text)) == "bad_signature");
    CHECK(with(raw.substr(0, 63)) == "bad_signature");
    CHECK(with(raw + '\0') == "bad_signature");
    CHECK(with('\0' + raw.substr(0, 32) + '\0' + raw.substr(32)) == "bad_signature");
    CHECK(with(std::string(64, '\0')) == "bad_signature");
    CHECK(with(std::string(64, '\xff')) == "bad_signature");
    CHECK(with("") == "bad_signature");
}

TEST_CASE("K8: a signature with one flipped bit, truncated or extended is bad, for every family")
{
    for (const auto algorithm : {HS256, jwt_algorithm::HS512, RS256, jwt_algorithm::PS256, ES256, jwt_algorithm::ES512,
                                 jwt_algorithm::EdDSA}) {
        CAPTURE(config::name_of(algorithm));
        const auto& key = key_for(algorithm);
        const auto verifier = verifier_of(key, {algorithm});
        const auto text = encode_base64url(R"({"alg":")" + std::string(config::name_of(algorithm)) + "\"}") + "." +
                          encode_base64url("{}");
        const auto signature = key.sign(algorithm, text);
        const auto with = [&](std::string_view other) { return state(verifier, text + "." + encode_base64url(other)); };
        CHECK(with(signature) == "valid");
        for (std::size_t i = 0; i < signature.size(); ++i) {
            auto changed = signature;
            changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
            CHECK(with(changed) == "bad_signature");
        }
        CHECK(with(signature.substr(1)) == "bad_signature");
        CHECK(with(signature.substr(0, signature.size() - 1)) == "bad_signature");
        CHECK(with(signature + 'x') == "bad_signature");
        CHECK(with('\0' + signature) == "bad_signature");
        CHECK(with("") == "bad_signature");
    }
}
