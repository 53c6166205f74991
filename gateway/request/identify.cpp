#include "gateway/request/identify.hpp"

#include "gateway/http/host.hpp"
#include "gateway/http/key_value.hpp"
#include "gateway/http/text.hpp"
#include "gateway/request/request.hpp"

#include <algorithm>

namespace headgate {

namespace {

using http::reading;

// Returns the token of a provider, which is verified once per request.
const verified_token& find_token(std::size_t provider, request& r)
{
    auto& tokens = r.memory->tokens;
    if (tokens.size() <= provider)
        tokens.resize(provider + 1);
    auto& token = tokens[provider];
    if (token.is == verified_token::state::not_looked_for)
        token = verify_token(r.config().verified_with.providers[provider], r.head().fields);
    return token;
}

reading read_claim(const compiled_source& source, request& r, http::byte_buffer& scratch)
{
    const auto& token = find_token(source.verified_by, r);
    if (token.is != verified_token::state::good)
        return token.is == verified_token::state::bad ? reading::invalid : reading::absent;
    const auto claim = token.claims.claim_text(source.name);
    if (!claim || claim->empty())
        return reading::absent;
    scratch.append(*claim);
    return reading::present;
}

// A key that the table does not have is no identity: it makes no counter, and the next source is asked (K8).
reading read_api_key(const compiled_source& source, request& r, std::string_view& value)
{
    if (const auto found = http::read_header(r.head().fields, source.name, value); found != reading::present)
        return found;
    const auto* owner = r.config().verified_with.tables[source.verified_by].keys->find(value);
    r.limits.has_unknown_key = r.limits.has_unknown_key || !owner;
    if (!owner || (source.is_plan && owner->plan.empty()))
        return reading::absent;
    value = source.is_plan ? owner->plan : owner->user;
    return reading::present;
}

// What one source says, as it is. `value` views the request's head or `scratch`.
reading read_source(const compiled_source& source, request& r, http::byte_buffer& scratch, std::string_view& value)
{
    using enum config::source_kind;
    scratch.clear();
    switch (source.what) {
    case header:
        return http::read_header(r.head().fields, source.name, value);
    case cookie:
        return http::read_cookie(r.head().fields, source.name, value);
    case query:
        return http::read_query(r.received.target.query, source.name, scratch, value);
    case path_param:
        return http::read_path_parameter(r.memory->match, source.name, value);
    case api_key:
        return read_api_key(source, r, value);
    case jwt_claim:
        if (const auto found = read_claim(source, r, scratch); found != reading::present)
            return found;
        break;
    case client_ip: {
        http::address_text text;
        scratch.append(http::format_address(
            http::aggregate(r.received.client.address, source.ipv4_prefix, source.ipv6_prefix), text));
        break;
    }
    case route:
        value = r.received.route->name;
        return reading::present;
    case host: {
        http::host_text text;
        scratch.append(http::routing_host(r.received.host, text));
        std::transform(scratch.data(), scratch.data() + scratch.size(), scratch.data(), http::to_lower);
        break;
    }
    case method:
        value = r.head().method;
        return reading::present;
    }
    value = scratch.view();
    return reading::present;
}

// The first source that is present.
reading read_key(const compiled_key& key, request& r, const compiled_source*& from, std::string_view& value)
{
    for (const auto& source : key.sources) {
        from = &source;
        if (const auto found = read_source(source, r, r.memory->key_value, value); found != reading::absent)
            return found;
    }
    return reading::absent;
}

// Why a key is absent although it must be there: a credential that was refused is not called missing.
key_state why_absent(const compiled_key& key, const request& r)
{
    if (key.takes(config::source_kind::jwt_claim) && !first_refusal(r.memory->tokens).empty())
        return key_state::invalid;
    const bool is_unknown = key.takes(config::source_kind::api_key) && r.limits.has_unknown_key;
    return is_unknown ? key_state::unknown : key_state::refused;
}

key_state append_one(http::byte_buffer& out, const compiled_key& key, request& r)
{
    const compiled_source* from = nullptr;
    std::string_view value;
    switch (read_key(key, r, from, value)) {
    case reading::malformed:
        return key_state::malformed;
    case reading::invalid:
        return key_state::invalid;
    case reading::present:
        out.append(from->tag);
        http::append_escaped(out, value);
        return key_state::known;
    case reading::absent:
        break;
    }
    switch (key.missing) {
    case config::missing_key::refuse:
        r.limits.refusing_key = &key;
        return why_absent(key, r);
    case config::missing_key::skip:
        return key_state::skipped;
    case config::missing_key::anonymous:
        break;
    }
    out.append("anonymous"); // without a source's tag: no client can be called that
    return key_state::known;
}

} // namespace

key_state append_key(http::byte_buffer& out, std::span<const compiled_key> key, request& r)
{
    bool first = true;
    for (const auto& part : key) {
        if (!std::exchange(first, false))
            out.append(',');
        if (const auto found = append_one(out, part, r); found != key_state::known)
            return found;
    }
    return key_state::known;
}

std::size_t read_plan(request& r)
{
    if (r.limits.plan)
        return *r.limits.plan;
    const auto& plans = r.config().plans;
    const compiled_source* from = nullptr;
    std::string_view said;
    const bool is_said = read_key(plans.key, r, from, said) == reading::present;
    r.limits.plan = is_said ? plans.number_of(said) : plans.default_plan;
    return *r.limits.plan;
}

const compiled_rules& choose_rules(const chain_part& part, std::string_view key, request& r)
{
    if (!part.varies())
        return part.variants.front();
    const auto* plan = part.plan_of(key);
    return part.rules_of(key, plan ? *plan : read_plan(r));
}

} // namespace headgate
