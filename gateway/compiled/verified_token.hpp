// The token of a request, verified by the provider that the configuration names.
#pragma once

#include "gateway/compiled/credentials.hpp"
#include "gateway/http/field_block.hpp"
#include "gateway/identity/token_claims.hpp"

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
};

verified_token verify_token(const token_provider& by, const http::field_list& fields);

} // namespace headgate
