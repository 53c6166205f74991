// The result of checking a token: valid, or the first error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headgate::identity {

enum class token_state : std::uint8_t
{
    valid,
    malformed,       // not a JWS of three parts with unambiguous JSON objects
    wrong_algorithm, // not allowed by the configuration; `none` never is
    unknown_key,     // no key with that name and family
    bad_signature,
    expired,
    not_yet_valid,
    wrong_issuer,   // or absent
    wrong_audience, // or absent
};

constexpr std::string_view name_of(token_state state)
{
    constexpr std::string_view names[] = {"valid",         "malformed",     "wrong_algorithm",
                                          "unknown_key",   "bad_signature", "expired",
                                          "not_yet_valid", "wrong_issuer",  "wrong_audience"};
    return names[static_cast<std::size_t>(state)];
}

} // namespace headgate::identity
