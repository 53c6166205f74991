// What came of a token: good, or the first thing that is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headgate::identity {

enum class token_state : std::uint8_t
{
    valid,
    malformed,       // not a JWS of three parts with JSON objects that can be read in one way only
    wrong_algorithm, // not one of those the configuration allows; `none` never is
    unknown_key,     // no key of that name and family
    bad_signature,
    expired,
    not_yet_valid,
    wrong_issuer,   // absent too
    wrong_audience, // absent too
};

constexpr std::string_view name_of(token_state state)
{
    constexpr std::string_view names[] = {"valid",         "malformed",     "wrong_algorithm",
                                          "unknown_key",   "bad_signature", "expired",
                                          "not_yet_valid", "wrong_issuer",  "wrong_audience"};
    return names[static_cast<std::size_t>(state)];
}

} // namespace headgate::identity
