// The claims of a verified token, and the checks that every token must pass: times, issuer and audience.
#pragma once

#include "gateway/identity/token_state.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::identity {

class token_claims
{
public:
    token_claims() = default; // every claim is absent
    explicit token_claims(nlohmann::json payload);

    // Returns a claim as text: a string as it is (it may be empty), an integer in decimal, `true` or `false`. Returns
    // nothing for an absent claim, null, a fraction, a list or an object, which have no unique text. `org.id` is the
    // claim of that name; if there is none, it is `id` in the object `org`.
    std::optional<std::string> claim_text(std::string_view name) const;

private:
    std::shared_ptr<const nlohmann::json> payload_; // an object; shared, so that copies are cheap
};

struct claim_rules
{
    std::string issuer;                // empty: not checked
    std::vector<std::string> audience; // empty: not checked
    std::chrono::microseconds leeway{0};
};

// Checks the claims. A token is valid from `nbf` until just before `exp`, each extended by the leeway. Both and `iat`
// may be absent; if present, they must be valid times.
// REQUIRES: `payload` is an object whose signature is verified.
token_state check_claims(const nlohmann::json& payload, const claim_rules& rules,
                         std::chrono::system_clock::time_point now);

} // namespace headgate::identity
