#include "gateway/compiled/verified_token.hpp"

#include "gateway/http/key_value.hpp"
#include "gateway/http/text.hpp"

#include <algorithm>
#include <chrono>

namespace headgate {

namespace {

constexpr std::string_view scheme = "Bearer";

bool begins_with_scheme(std::string_view value)
{
    return http::equals_ignoring_case(value.substr(0, scheme.size()), scheme);
}

// Returns the token behind the scheme's name; empty when it is not the name, spaces and one token (RFC 9110 §11.4).
std::string_view credentials_in(std::string_view value)
{
    const auto rest = value.substr(scheme.size());
    const auto token = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    const bool is_one = token.size() < rest.size() && token.find_first_of(" \t") == std::string_view::npos;
    return is_one ? token : std::string_view{};
}

} // namespace

verified_token verify_token(const token_provider& by, const http::field_list& fields)
{
    std::string_view value;
    const auto found = http::read_line(fields, by.header, value);
    // What begins with the scheme's name is meant for this provider, however it goes on: passed on unverified, an
    // upstream that reads it less strictly might accept it.
    const bool is_bearer = begins_with_scheme(value);
    // Other schemes than Bearer are not for this provider; other headers than Authorization need no scheme.
    const bool is_another =
        found == http::reading::present && !is_bearer && http::equals_ignoring_case(by.header, "Authorization");
    if (found == http::reading::absent || is_another)
        return {verified_token::state::absent, {}, {}};
    std::string_view refusal = "repeated";
    if (found == http::reading::present) { // once
        const auto token = is_bearer ? credentials_in(value) : http::trim(value);
        auto result = by.verifier.verify(token, std::chrono::system_clock::now());
        if (result)
            return {verified_token::state::good, std::move(result.claims), {}};
        refusal = name_of(result.state);
    }
    const bool is_refused = by.invalid == config::invalid_token::refuse;
    return {is_refused ? verified_token::state::bad : verified_token::state::absent, {}, refusal};
}

std::string_view first_refusal(std::span<const verified_token> tokens)
{
    const auto refused = std::find_if(tokens.begin(), tokens.end(), [](const auto& t) { return !t.refusal.empty(); });
    return refused == tokens.end() ? std::string_view{} : refused->refusal;
}

} // namespace headgate
