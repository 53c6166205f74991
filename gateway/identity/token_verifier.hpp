// Verifies JSON Web Tokens in their compact form (RFC 7515, RFC 7519). Pure: no clock, and files only in `load`. The
// contents of a token are not trusted before its signature is verified: the configuration decides the algorithms, and a
// token selects one of them and the name of a key.
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
    token_claims claims; // set when valid
    explicit operator bool() const { return state == token_state::valid; }
};

class token_verifier
{
public:
    struct loaded;

    // Loads the keys that the entry names. Does not throw, whatever the files contain.
    static loaded load(const config::jwt_config& config);

    // Verifies a token. May be called by any number of threads at once. `token` is without `Bearer `.
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
    std::optional<token_verifier> verifier; // set when there are no problems
    std::vector<std::string> problems;      // for operators: the file, the error and the fix
};

} // namespace headgate::identity
