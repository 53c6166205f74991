#include "gateway/request/identify.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/parameters.hpp"
#include "gateway/http/text.hpp"
#include "gateway/request/exchange.hpp"

#include <algorithm>

namespace headgate {

namespace {

constexpr std::size_t longest_value = 256;

enum class presence
{
    absent,
    present,
    malformed,
    invalid // a token that is not good, where that is refused
};

// How many bytes of RFC 3986's unreserved set it begins with: letters, digits, "-", ".", "_", "~". Most values have no
// others.
std::size_t count_unreserved(std::string_view text)
{
    std::size_t n = 0;
    while (n < text.size() && http::is_class(text[n], http::detail::unreserved_byte))
        ++n;
    return n;
}

// Bytes outside the unreserved set become %XX; "%", "," and "=" are outside it.
void append_escaped(http::byte_buffer& out, std::string_view text)
{
    constexpr char digits[] = "0123456789ABCDEF";
    const auto plain = count_unreserved(text);
    out.append(text.substr(0, plain));
    for (const char c : text.substr(plain)) {
        if (http::is_class(c, http::detail::unreserved_byte)) {
            out.append(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            const char escaped[] = {'%', digits[byte >> 4], digits[byte & 15]};
            out.append(std::string_view(escaped, 3));
        }
    }
}

bool is_sound(std::string_view value)
{
    return !value.empty() && value.size() <= longest_value &&
           std::all_of(value.begin(), value.end(), [](char c) { return http::is_class(c, http::detail::text_byte); });
}

presence if_sound(std::string_view value) { return is_sound(value) ? presence::present : presence::malformed; }

presence read_line(const http::field_list& fields, std::string_view name, std::string_view& value)
{
    switch (http::find_only_line(fields, name, value)) {
    case http::parameter_state::absent:
        return presence::absent;
    case http::parameter_state::repeated:
        return presence::malformed;
    case http::parameter_state::found:
        break;
    }
    return presence::present;
}

// A credential is one line of visible ASCII.
presence read_header(const http::field_list& fields, std::string_view name, std::string_view& value)
{
    if (const auto found = read_line(fields, name, value); found != presence::present)
        return found;
    if (count_unreserved(value) == value.size()) // visible, and sound if there is any
        return !value.empty() && value.size() <= longest_value ? presence::present : presence::malformed;
    const bool visible = std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    return visible ? if_sound(value) : presence::malformed;
}

presence read_parameter(http::parameter_state state, std::string_view value)
{
    switch (state) {
    case http::parameter_state::absent:
        return presence::absent;
    case http::parameter_state::repeated:
        return presence::malformed;
    case http::parameter_state::found:
        break;
    }
    return if_sound(value);
}

presence read_path_parameter(const http::route_match& match, std::string_view name, std::string_view& value)
{
    for (const auto& parameter : match.params()) {
        if (parameter.name != name)
            continue;
        value = parameter.value; // of the path in its one spelling
        return if_sound(value);
    }
    return presence::absent;
}

token_seen verify_token(const token_provider& by, const http::field_list& fields)
{
    constexpr std::string_view scheme = "Bearer ";
    std::string_view value;
    const auto found = read_line(fields, by.header, value);
    const bool is_bearer = http::equals_ignoring_case(value.substr(0, scheme.size()), scheme);
    // Other schemes than Bearer are somebody else's credentials; a header of its own needs no scheme.
    const bool is_another =
        found == presence::present && !is_bearer && http::equals_ignoring_case(by.header, "Authorization");
    if (found == presence::absent || is_another)
        return {true, token_seen::absent, {}};
    if (found == presence::present) { // once
        const auto token = http::trim(value.substr(is_bearer ? scheme.size() : 0));
        if (auto result = by.verifier.verify(token, std::chrono::system_clock::now()))
            return {true, token_seen::good, std::move(result.claims)};
    }
    return {true, by.invalid == config::invalid_token::refuse ? token_seen::bad : token_seen::absent, {}};
}

// The token of a provider, verified once a request.
const token_seen& see_token(std::size_t provider, exchange& x)
{
    if (x.tokens.size() <= provider)
        x.tokens.resize(provider + 1);
    auto& seen = x.tokens[provider];
    if (!seen.looked)
        seen = verify_token(x.setup->verified_with.providers[provider], x.head().fields);
    return seen;
}

presence read_claim(const compiled_source& source, exchange& x, http::byte_buffer& scratch)
{
    const auto& seen = see_token(source.verified_by, x);
    if (seen.state != token_seen::good)
        return seen.state == token_seen::bad ? presence::invalid : presence::absent;
    const auto claim = seen.claims.claim_text(source.name);
    if (!claim || claim->empty())
        return presence::absent;
    scratch.append(*claim);
    return presence::present;
}

// A key that nobody has is no identity: it makes no counter, and the next source is asked (K8).
presence read_api_key(const compiled_source& source, const exchange& x, std::string_view& value)
{
    if (const auto found = read_header(x.head().fields, source.name, value); found != presence::present)
        return found;
    const auto* owner = x.setup->verified_with.tables[source.verified_by].find(value);
    if (!owner || (source.says_plan && owner->plan.empty()))
        return presence::absent;
    value = source.says_plan ? owner->plan : owner->user;
    return presence::present;
}

// What one source says, as it is. `value` views the request's head or `scratch`.
presence read_source(const compiled_source& source, exchange& x, http::byte_buffer& scratch, std::string_view& value)
{
    using enum compiled_source::kind;
    scratch.clear();
    switch (source.what) {
    case header:
        return read_header(x.head().fields, source.name, value);
    case cookie:
        return read_parameter(http::find_cookie(x.head().fields, source.name, value), value);
    case query:
        return read_parameter(http::find_query_parameter(x.target.query, source.name, scratch, value), value);
    case path_param:
        return read_path_parameter(x.match, source.name, value);
    case api_key:
        return read_api_key(source, x, value);
    case jwt_claim:
        if (const auto found = read_claim(source, x, scratch); found != presence::present)
            return found;
        break;
    case client_ip: {
        http::address_text text;
        scratch.append(
            http::format_address(http::aggregate(x.client.address, source.ipv4_prefix, source.ipv6_prefix), text));
        break;
    }
    case route:
        value = x.route->name;
        return presence::present;
    case host:
        scratch.append(http::routing_host(x.host));
        std::transform(scratch.data(), scratch.data() + scratch.size(), scratch.data(), http::to_lower);
        break;
    case method:
        value = x.head().method;
        return presence::present;
    }
    value = scratch.view();
    return presence::present;
}

// The first source that is present.
presence read_key(const compiled_key& key, exchange& x, const compiled_source*& from, std::string_view& value)
{
    for (const auto& source : key.sources) {
        from = &source;
        if (const auto found = read_source(source, x, x.value_text, value); found != presence::absent)
            return found;
    }
    return presence::absent;
}

key_state append_one(http::byte_buffer& out, const compiled_key& key, exchange& x)
{
    const compiled_source* from = nullptr;
    std::string_view value;
    switch (read_key(key, x, from, value)) {
    case presence::malformed:
        return key_state::malformed;
    case presence::invalid:
        return key_state::invalid;
    case presence::present:
        out.append(from->tag);
        append_escaped(out, value);
        return key_state::known;
    case presence::absent:
        break;
    }
    switch (key.missing) {
    case config::missing_key::refuse:
        return key_state::refused;
    case config::missing_key::skip:
        return key_state::skipped;
    case config::missing_key::anonymous:
        break;
    }
    out.append("anonymous"); // without a source's tag: no client can be called that
    return key_state::known;
}

} // namespace

key_state append_key(http::byte_buffer& out, std::span<const compiled_key> key, exchange& x)
{
    bool first = true;
    for (const auto& part : key) {
        if (!std::exchange(first, false))
            out.append(',');
        if (const auto found = append_one(out, part, x); found != key_state::known)
            return found;
    }
    return key_state::known;
}

std::size_t read_plan(exchange& x)
{
    if (x.plan)
        return *x.plan;
    const auto& plans = x.setup->plans;
    const compiled_source* from = nullptr;
    std::string_view said;
    const bool is_said = read_key(plans.key, x, from, said) == presence::present;
    x.plan = is_said ? plans.number_of(said) : plans.default_plan;
    return *x.plan;
}

const compiled_rules& choose_rules(const chain_part& part, exchange& x)
{
    if (!part.varies())
        return part.variants.front();
    auto plan = read_plan(x);
    const auto* by_plan = &part.by_plan;
    for (const auto& key : part.key) {
        const compiled_source* from = nullptr;
        std::string_view value;
        if (read_key(key, x, from, value) != presence::present || !from->may_have_overrides)
            continue;
        const auto& plans = x.setup->plans.by_key_value;
        if (const auto its_plan = plans.find(value); its_plan != plans.end())
            plan = its_plan->second;
        if (const auto its_rules = part.by_value.find(value); its_rules != part.by_value.end())
            by_plan = &its_rules->second;
    }
    return part.variants[(*by_plan)[plan]];
}

} // namespace headgate
