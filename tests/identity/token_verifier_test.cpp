// Valid tokens, the keys they are verified with, and the problems of invalid key files.
#include "gateway/identity/token_verifier.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>
#include <openssl/err.h>

#include <atomic>
#include <thread>

using namespace headgate::identity;
using namespace headgate::identity::testing;
namespace config = headgate::config;

namespace {

const auto now = at_second(1'700'000'000);

std::vector<jwt_algorithm> every_algorithm()
{
    std::vector<jwt_algorithm> all;
    for (std::size_t i = 0; i < config::names_of(jwt_algorithm{}).size(); ++i)
        all.push_back(static_cast<jwt_algorithm>(i));
    return all;
}

std::string problems_of(const config::jwt_config& jwt) { return joined(token_verifier::load(jwt).problems); }

std::string pem_problems(std::string_view text, std::vector<jwt_algorithm> algorithms)
{
    const temporary_file file(text);
    config::jwt_config jwt;
    jwt.algorithms = std::move(algorithms);
    jwt.public_key = file.path();
    const auto problems = problems_of(jwt);
    CHECK(problems.starts_with(file.path() + ": "));
    return problems.substr(std::min(problems.size(), file.path().size() + 2));
}

} // namespace

TEST_CASE("tokens: every algorithm verifies the signature of its key, from a secret, a PEM file and a key set")
{
    for (const auto algorithm : every_algorithm()) {
        CAPTURE(config::name_of(algorithm));
        const auto& key = key_for(algorithm);
        const auto token = make_token(key, algorithm, R"({"sub":"alice"})");
        const auto from_file = verifier_of(key, {algorithm}).verify(token, now);
        CHECK(name_of(from_file.state) == "valid");
        CHECK(from_file.claims.claim_text("sub") == "alice");
        const auto from_set = verifier_of_jwks(R"({"keys":[)" + key.jwk() + "]}", {algorithm}).verify(token, now);
        CHECK(name_of(from_set.state) == "valid");
        CHECK(from_set.claims.claim_text("sub") == "alice");
    }
}

TEST_CASE("tokens: an algorithm that is not configured is refused, even if its key is")
{
    const auto all = every_algorithm();
    for (const auto allowed : all) {
        const auto verifier = verifier_of(key_for(allowed), {allowed});
        for (const auto used : all) {
            CAPTURE(config::name_of(allowed));
            CAPTURE(config::name_of(used));
            const auto token = make_token(key_for(used), used, "{}");
            CHECK((verifier.verify(token, now).state == token_state::valid) == (used == allowed));
        }
    }
}

TEST_CASE("tokens: a signature is not accepted under the name of another algorithm")
{
    for (const auto used : every_algorithm())
        for (const auto named : every_algorithm()) {
            if (used == named)
                continue;
            CAPTURE(config::name_of(used));
            CAPTURE(config::name_of(named));
            const auto header = R"({"alg":")" + std::string(config::name_of(named)) + "\"}";
            const auto token = make_token(key_for(used), used, header, "{}");
            CHECK(name_of(verifier_of(key_for(named), {named}).verify(token, now).state) == "bad_signature");
        }
}

TEST_CASE("tokens: a refused token leaves no error in OpenSSL's queue, which TLS on the same thread reads")
{
    const auto verifier = verifier_of(key_for(jwt_algorithm::RS256), {jwt_algorithm::RS256});
    ERR_clear_error();
    auto token = make_token(key_for(jwt_algorithm::RS256), jwt_algorithm::RS256, "{}");
    token.replace(token.rfind('.') + 1, 8, "AAAAAAAA");
    CHECK(name_of(verifier.verify(token, now).state) == "bad_signature");
    CHECK(ERR_peek_error() == 0);
}

TEST_CASE("tokens: many threads can use one verifier")
{
    const auto good = make_token(key_for(jwt_algorithm::ES256), jwt_algorithm::ES256, R"({"sub":"alice"})");
    const auto bad = make_token(signing_key::ec("P-256"), jwt_algorithm::ES256, R"({"sub":"mallory"})");
    const auto verifier = verifier_of(key_for(jwt_algorithm::ES256), {jwt_algorithm::ES256});
    std::atomic<int> right = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 50; ++n)
                right += verifier.verify(good, now).state == token_state::valid &&
                         verifier.verify(bad, now).state == token_state::bad_signature;
        });
    threads.clear();
    CHECK(right == 200);
}

TEST_CASE("tokens: issuer, audience and leeway come from the configuration")
{
    config::jwt_config jwt;
    jwt.algorithms = {jwt_algorithm::HS256};
    jwt.secret = config::secret(key_for(jwt_algorithm::HS256).bytes());
    jwt.issuer = "joe";
    jwt.audience = {"api"};
    const auto verifier = must_load(jwt); // leeway 30 s, the default
    const auto state = [&](std::string_view payload, std::int64_t second) {
        const auto token = make_token(key_for(jwt_algorithm::HS256), jwt_algorithm::HS256, payload);
        return name_of(verifier.verify(token, at_second(second)).state);
    };
    CHECK(state(R"({"iss":"joe","aud":"api","exp":1000,"nbf":500})", 1029) == "valid");
    CHECK(state(R"({"iss":"joe","aud":"api","exp":1000,"nbf":500})", 1030) == "expired");
    CHECK(state(R"({"iss":"joe","aud":"api","exp":1000,"nbf":500})", 470) == "valid");
    CHECK(state(R"({"iss":"joe","aud":"api","exp":1000,"nbf":500})", 469) == "not_yet_valid");
    CHECK(state(R"({"iss":"eve","aud":"api"})", 0) == "wrong_issuer");
    CHECK(state(R"({"iss":"joe","aud":"web"})", 0) == "wrong_audience");
}

TEST_CASE("keys: a secret shorter than its digest is a problem, and is not shown")
{
    config::jwt_config jwt;
    jwt.algorithms = {jwt_algorithm::HS256, jwt_algorithm::HS512};
    jwt.secret = config::secret("hunter2-hunter2-hunter2-hunter2-"); // 32 bytes
    CHECK(problems_of(jwt) == "secret: a secret of 32 bytes is too short for HS512; it needs 64 or more random bytes");
    jwt.algorithms = {jwt_algorithm::HS256};
    CHECK(problems_of(jwt) == "");
    jwt.secret = config::secret("hunter2");
    CHECK(problems_of(jwt).find("hunter2") == std::string::npos);
}

TEST_CASE("keys: a public key given as the secret is a problem: every client could sign with it")
{
    config::jwt_config jwt;
    jwt.algorithms = {jwt_algorithm::HS256};
    jwt.secret = config::secret(key_for(jwt_algorithm::RS256).public_pem());
    CHECK(problems_of(jwt) == "secret: this is a PEM key, not a secret; give a file with it as `public_key`");
}

TEST_CASE("keys: an unusable PEM file is reported with its type and the fix")
{
    const auto pem = key_for(jwt_algorithm::RS256).public_pem();
    const std::vector rs{jwt_algorithm::RS256};
    CHECK(pem_problems("", rs) == "this is not a public key; the file must begin with -----BEGIN PUBLIC KEY-----");
    CHECK(pem_problems("nonsense", rs) ==
          "this is not a public key; the file must begin with -----BEGIN PUBLIC KEY-----");
    CHECK(pem_problems(key_for(jwt_algorithm::RS256).private_pem(), rs) ==
          "this is a private key, which is not needed here; make the public key with `openssl pkey -pubout`");
    CHECK(pem_problems("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", rs) ==
          "this is a certificate; extract its key with `openssl x509 -pubkey -noout`");
    CHECK(pem_problems("-----BEGIN RSA PUBLIC KEY-----\n-----END RSA PUBLIC KEY-----\n", rs) ==
          "this is an RSA key in its old form; convert it with `openssl rsa -RSAPublicKey_in -pubout`");
    CHECK(pem_problems(pem + pem, rs) == "there are 2 PEM blocks; only one key is read here, use `jwks` for several");
    CHECK(pem_problems(pem.substr(0, 100), rs) ==
          "the PEM block is damaged; export the key again with `openssl pkey -pubout`");
    CHECK(pem_problems(key_for(jwt_algorithm::ES256).public_pem(), rs) ==
          "this is an EC key on P-256, but `algorithms` has only RS256; ES256 would go with it");
    CHECK(pem_problems(signing_key::ec("secp256k1").public_pem(), {jwt_algorithm::ES256}) ==
          "this EC key is on a curve that JWS does not use; P-256, P-384 and P-521 are the ones");
    CHECK(pem_problems(signing_key::rsa(1024).public_pem(), rs) ==
          "this RSA key has 1024 bits; it needs 2048 to 16384");
}

TEST_CASE("keys: a damaged PEM file is a problem or verifies nothing, and does not crash")
{
    const auto& key = key_for(jwt_algorithm::ES256);
    const auto pem = key.public_pem();
    const auto token = make_token(key, jwt_algorithm::ES256, "{}");
    // Not the last four digits: the bits after the end of the key have no meaning.
    const auto first = pem.find('\n') + 1, last = pem.find("\n-----END") - 4;
    for (auto i = first; i < last; ++i) {
        CAPTURE(i);
        auto damaged = pem;
        damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
        const temporary_file file(damaged);
        config::jwt_config jwt;
        jwt.algorithms = {jwt_algorithm::ES256};
        jwt.public_key = file.path();
        const auto loaded = token_verifier::load(jwt);
        CHECK(loaded.verifier.has_value() == loaded.problems.empty());
        CHECK_FALSE((loaded.verifier && loaded.verifier->verify(token, now)));
    }
}

TEST_CASE("keys: missing files and configurations without keys are problems")
{
    config::jwt_config jwt;
    jwt.algorithms = {jwt_algorithm::RS256};
    CHECK(problems_of(jwt) == "there is no key to verify a token; give `secret`, `public_key` or `jwks`");
    jwt.public_key = "/nowhere/jwt.pem";
    CHECK(problems_of(jwt) == "/nowhere/jwt.pem: there is no such file");
    jwt.public_key = "/";
    CHECK(problems_of(jwt) == "/: this is a directory; name a file in it");
    jwt.public_key.clear();
    jwt.jwks = "/nowhere/jwks.json";
    CHECK(problems_of(jwt) == "/nowhere/jwks.json: there is no such file");
    jwt.algorithms.clear();
    CHECK(problems_of(jwt) == "`algorithms` is empty; list at least one, such as RS256");
}
