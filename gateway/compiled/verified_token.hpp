// The token of a request, verified by the provider that the configuration names.
#pragma once

#include "gateway/compiled/credentials.hpp"
#include "gateway/http/head/field_block.hpp"
#include "gateway/identity/token_claims.hpp"

#include <span>
#include <string_view>

namespace headgate {

struct verified_token
{
    enum class state
    {
        not_looked_for,
        absent,
        bad,
        good
    };
    state is = state::not_looked_for;
    identity::token_claims claims;
    std::string_view refusal; // why it was refused, also where it counts as absent then; empty: it was not
};

verified_token verify_token(const token_provider& by, const http::field_list& fields);

// Returns why the first token that was refused was; empty when none was.
std::string_view first_refusal(std::span<const verified_token> tokens);

} // namespace headgate
