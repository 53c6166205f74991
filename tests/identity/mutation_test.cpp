// A valid token that is changed in any place is never valid again, because strict base64url gives every token one
// encoding.
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;

namespace {

const std::string payload = R"({"sub":"alice","exp":2000})";

bool is_valid(const token_verifier& verifier, std::string_view token)
{
    return verifier.verify(token, at_second(1000)).state == token_state::valid;
}

} // namespace

TEST_CASE("K8: replacing any byte of an HS256 token by any other byte makes it invalid")
{
    const auto& key = key_for(jwt_algorithm::HS256);
    const auto verifier = verifier_of(key, {jwt_algorithm::HS256});
    const auto token = make_token(key, jwt_algorithm::HS256, payload);
    REQUIRE(is_valid(verifier, token));
    std::size_t still_valid = 0;
    for (std::size_t i = 0; i < token.size(); ++i)
        for (int change = 1; change < 256; ++change) {
            auto changed = token;
            changed[i] = static_cast<char>(changed[i] ^ change);
            still_valid += is_valid(verifier, changed);
        }
    CHECK(still_valid == 0);
}

TEST_CASE("K8: flipping any bit, removing or doubling any byte, or truncating a token makes it invalid")
{
    for (const auto algorithm : {jwt_algorithm::HS512, jwt_algorithm::RS256, jwt_algorithm::PS512, jwt_algorithm::ES256,
                                 jwt_algorithm::EdDSA}) {
        CAPTURE(headgate::config::name_of(algorithm));
        const auto& key = key_for(algorithm);
        const auto verifier = verifier_of(key, {algorithm});
        const auto token = make_token(key, algorithm, payload);
        REQUIRE(is_valid(verifier, token));
        for (std::size_t i = 0; i < token.size(); ++i) {
            CAPTURE(i);
            std::size_t still_valid = 0;
            for (int bit = 0; bit < 8; ++bit) {
                auto changed = token;
                changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
                still_valid += is_valid(verifier, changed);
            }
            still_valid += is_valid(verifier, token.substr(0, i) + token.substr(i + 1));
            still_valid += is_valid(verifier, token.substr(0, i) + token[i] + token.substr(i));
            still_valid += is_valid(verifier, token.substr(0, i));
            CHECK(still_valid == 0);
        }
    }
}
