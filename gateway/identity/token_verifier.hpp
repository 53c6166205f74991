// Verifies JSON Web Tokens in their compact form (RFC 7515, RFC 7519). Pure: no clock, and files only in `load`.
// What a token says about itself is never believed before its signature has been verified: the configuration decides
// the algorithms, and a token only picks one of them and the name of one of our keys.
#pragma once

#include "config/model.hpp"
#include "gateway/identity/signature.hpp"
#include "gateway/identity/token_claims.hpp"
#include "gateway/identity/token_state.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity {

inline constexpr std::size_t longest_token = 8 * 1024; // bytes

struct token_result
{
    token_state state = token_state::malformed;
    token_claims claims; // when valid
    explicit operator bool() const { return state == token_state::valid; }
};

class token_verifier
{
public:
    struct loaded;

    // Reads the keys the entry names. Never throws on what a file holds.
    static loaded load(const config::jwt_config& config);

    // From any thread, any number at once. `token` is without `Bearer `.
    token_result verify(std::string_view token, std::chrono::system_clock::time_point now) const;

private:
    token_verifier() = default;

    std::optional<jwt_algorithm> find_algorithm(std::string_view name) const;
    token_state check_signature(jwt_algorithm algorithm, const std::optional<std::string>& key_id,
                                std::string_view signed_text, std::string_view signature) const;

    std::vector<jwt_algorithm> algorithms_;
    std::vector<verification_key> keys_;
    claim_rules rules_;
};

struct token_verifier::loaded
{
    std::optional<token_verifier> verifier; // when there are no problems
    std::vector<std::string> problems;      // for people: which file, what is wrong, what would be right
};

} // namespace headgate::identity
