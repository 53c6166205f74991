#include "gateway/compiled/verified_token.hpp"

#include "gateway/http/key_value.hpp"
#include "gateway/http/text.hpp"

#include <chrono>

namespace headgate {

verified_token verify_token(const token_provider& by, const http::field_list& fields)
{
    constexpr std::string_view scheme = "Bearer ";
    std::string_view value;
    const auto found = http::read_line(fields, by.header, value);
    const bool is_bearer = http::equals_ignoring_case(value.substr(0, scheme.size()), scheme);
    // Other schemes than Bearer are not for this provider; other headers than Authorization need no scheme.
    const bool is_another =
        found == http::reading::present && !is_bearer && http::equals_ignoring_case(by.header, "Authorization");
    if (found == http::reading::absent || is_another)
        return {verified_token::state::absent, {}};
    if (found == http::reading::present) { // once
        const auto token = http::trim(value.substr(is_bearer ? scheme.size() : 0));
        if (auto result = by.verifier.verify(token, std::chrono::system_clock::now()))
            return {verified_token::state::good, std::move(result.claims)};
    }
    return {by.invalid == config::invalid_token::refuse ? verified_token::state::bad : verified_token::state::absent,
            {}};
}

} // namespace headgate
