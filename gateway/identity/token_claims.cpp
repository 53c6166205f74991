#include "gateway/identity/token_claims.hpp"

#include "gateway/identity/strict_json.hpp"

#include <algorithm>
#include <utility>

namespace headgate::identity {

namespace {

using nlohmann::json;
using std::chrono::microseconds;

// The end of the year 9999: refuses times in milliseconds, and keeps the arithmetic below from overflowing.
constexpr double latest_second = 253'402'300'799;

struct moment
{
    bool sound = true; // the claim is absent, or a valid time
    std::optional<microseconds> at;
};

moment read_moment(const json& payload, std::string_view name)
{
    const auto* claim = find_member(payload, name);
    if (!claim)
        return {};
    if (!claim->is_number())
        return {.sound = false};
    const auto seconds = claim->get<double>();
    if (!(seconds >= 0 && seconds <= latest_second))
        return {.sound = false};
    // Whole seconds, the usual case, are exact.
    if (claim->is_number_integer())
        return {.at = std::chrono::seconds(claim->get<std::int64_t>())};
    return {.at = microseconds(static_cast<std::int64_t>(seconds * 1e6))};
}

bool is_text(const json* claim, const std::string& text)
{
    return claim && claim->is_string() && claim->get_ref<const std::string&>() == text;
}

// Returns whether `aud`, a string or a list of strings, contains a configured audience. A list with other types
// contains none.
bool has_audience(const json* claim, const std::vector<std::string>& audience)
{
    const auto wanted = [&](const json& one) {
        return std::any_of(audience.begin(), audience.end(), [&](const auto& name) { return is_text(&one, name); });
    };
    if (!claim || !claim->is_array())
        return claim && wanted(*claim);
    return std::all_of(claim->begin(), claim->end(), [](const json& one) { return one.is_string(); }) &&
           std::any_of(claim->begin(), claim->end(), wanted);
}

const json* find_claim(const json& object, std::string_view name)
{
    if (const auto* claim = find_member(object, name))
        return claim;
    const auto dot = name.find('.');
    const auto* inner = dot == std::string_view::npos ? nullptr : find_member(object, name.substr(0, dot));
    return inner ? find_claim(*inner, name.substr(dot + 1)) : nullptr;
}

} // namespace

token_claims::token_claims(json payload) : payload_(std::make_shared<const json>(std::move(payload))) {}

std::optional<std::string> token_claims::claim_text(std::string_view name) const
{
    const auto* claim = payload_ ? find_claim(*payload_, name) : nullptr;
    if (!claim)
        return std::nullopt;
    if (claim->is_string())
        return claim->get<std::string>();
    if (claim->is_boolean())
        return claim->get<bool>() ? "true" : "false";
    if (claim->is_number_unsigned())
        return std::to_string(claim->get<std::uint64_t>());
    if (claim->is_number_integer())
        return std::to_string(claim->get<std::int64_t>());
    return std::nullopt;
}

token_state check_claims(const json& payload, const claim_rules& rules, std::chrono::system_clock::time_point now)
{
    const auto expires = read_moment(payload, "exp"), begins = read_moment(payload, "nbf"),
               issued = read_moment(payload, "iat");
    if (!expires.sound || !begins.sound || !issued.sound)
        return token_state::malformed;
    // In microseconds, because a time_point of the system clock ends in the year 2262.
    const auto here = std::chrono::floor<microseconds>(now.time_since_epoch());
    if (expires.at && here >= *expires.at + rules.leeway)
        return token_state::expired;
    if (begins.at && here < *begins.at - rules.leeway)
        return token_state::not_yet_valid;
    if (!rules.issuer.empty() && !is_text(find_member(payload, "iss"), rules.issuer))
        return token_state::wrong_issuer;
    if (!rules.audience.empty() && !has_audience(find_member(payload, "aud"), rules.audience))
        return token_state::wrong_audience;
    return token_state::valid;
}

} // namespace headgate::identity
