#include "gateway/identity/token_verifier.hpp"

#include "gateway/identity/base64url.hpp"
#include "gateway/identity/strict_json.hpp"
#include "gateway/identity/token_keys.hpp"

#include <algorithm>
#include <utility>

namespace headgate::identity {

namespace {

struct token_parts
{
    std::string_view signed_text; // the first two parts, as received
    std::string header;
    std::string payload;
    std::string signature;
};

// Splits a token into three parts and decodes them.
std::optional<token_parts> split_token(std::string_view token)
{
    if (token.size() > longest_token)
        return std::nullopt;
    const auto first = token.find('.'), last = token.rfind('.');
    if (first == last || token.find('.', first + 1) != last)
        return std::nullopt;
    auto header = decode_base64url(token.substr(0, first));
    auto payload = decode_base64url(token.substr(first + 1, last - first - 1));
    auto signature = decode_base64url(token.substr(last + 1));
    if (!header || !payload || !signature)
        return std::nullopt;
    return token_parts{token.substr(0, last), std::move(*header), std::move(*payload), std::move(*signature)};
}

struct token_header
{
    std::string algorithm;
    std::optional<std::string> key_id;
};

std::optional<token_header> read_header(std::string_view text)
{
    const auto parsed = parse_strict_json(text);
    // `crit` lists extensions that must be understood; none is supported.
    if (!parsed || !parsed.value.is_object() || find_member(parsed.value, "crit"))
        return std::nullopt;
    const auto* algorithm = find_member(parsed.value, "alg");
    const auto* key_id = find_member(parsed.value, "kid");
    if (!algorithm || !algorithm->is_string() || (key_id && !key_id->is_string()))
        return std::nullopt;
    token_header header{algorithm->get<std::string>(), {}};
    if (key_id)
        header.key_id = key_id->get<std::string>();
    return header;
}

} // namespace

token_verifier::loaded token_verifier::load(const config::jwt_config& config)
{
    auto set = load_token_keys(config);
    if (!set.problems.empty())
        return {{}, std::move(set.problems)};
    token_verifier verifier;
    verifier.algorithms_ = config.algorithms;
    verifier.keys_ = std::move(set.keys);
    verifier.rules_ = {config.issuer, config.audience, config.leeway};
    return {std::move(verifier), {}};
}

token_result token_verifier::verify(std::string_view token, std::chrono::system_clock::time_point now) const
{
    const auto parts = split_token(token);
    if (!parts)
        return {token_state::malformed, {}};
    const auto header = read_header(parts->header);
    if (!header)
        return {token_state::malformed, {}};
    const auto algorithm = find_algorithm(header->algorithm);
    if (!algorithm)
        return {token_state::wrong_algorithm, {}};
    const auto signature = check_signature(*algorithm, header->key_id, parts->signed_text, parts->signature);
    if (signature != token_state::valid)
        return {signature, {}};
    // The payload is parsed only after its signature was verified.
    auto payload = parse_strict_json(parts->payload);
    if (!payload || !payload.value.is_object())
        return {token_state::malformed, {}};
    const auto state = check_claims(payload.value, rules_, now);
    if (state != token_state::valid)
        return {state, {}};
    return {token_state::valid, token_claims(std::move(payload.value))};
}

// Searches only the allowed algorithms, so that no spelling of `none` is ever found.
std::optional<jwt_algorithm> token_verifier::find_algorithm(std::string_view name) const
{
    const auto found = std::find_if(algorithms_.begin(), algorithms_.end(),
                                    [&](jwt_algorithm algorithm) { return config::name_of(algorithm) == name; });
    return found == algorithms_.end() ? std::nullopt : std::optional(*found);
}

token_state token_verifier::check_signature(jwt_algorithm algorithm, const std::optional<std::string>& key_id,
                                            std::string_view signed_text, std::string_view signature) const
{
    auto state = token_state::unknown_key;
    for (const auto& key : keys_) {
        // A key without a name matches every `kid`, but only while it is the only key.
        const bool named = !key_id || (key.id ? *key.id == *key_id : keys_.size() == 1);
        if (!named || !key.fits(algorithm))
            continue;
        if (verify_signature(key, algorithm, signed_text, signature))
            return token_state::valid;
        state = token_state::bad_signature;
    }
    return state;
}

} // namespace headgate::identity
