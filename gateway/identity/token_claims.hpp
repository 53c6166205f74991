// What a verified token says, and the claims every token is held to: its times, its issuer, whom it is meant for.
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
    token_claims() = default; // of no token: every claim is absent
    explicit token_claims(nlohmann::json payload);

    // One unambiguous value as text: a string as it is (it may be empty), an integer in decimal, `true` or `false`.
    // Absent, null, a fraction, a list or an object is nothing: an identity must not depend on how such is written.
    // `org.id` is the claim of that name; only if there is none, it is `id` in the object `org`.
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

// `payload` is an object whose signature has been verified. A token is good from `nbf` on and until just before `exp`,
// each moved by the leeway; those two and `iat` may be absent, but never be anything other than a moment.
token_state check_claims(const nlohmann::json& payload, const claim_rules& rules,
                         std::chrono::system_clock::time_point now);

} // namespace headgate::identity
