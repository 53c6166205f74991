// The keys of tokens, API keys, keys, plans, chains and rules, with their short forms.
#include "config/describe.hpp"

namespace headgate::config {

void describe(visitor& v, jwt_config& x)
{
    v.key("algorithms", x.algorithms,
          {.doc = "Accepted signature algorithms; `none` is never accepted.",
           .required = true,
           .one_or_many = true,
           .example = "[ RS256 ]"});
    v.key("header", x.header,
          {.doc = "Header field with the token; a leading `Bearer ` is removed.", .check = check_header_name});
    v.key("secret", x.secret,
          {.doc = "Shared secret for HS algorithms.", .is_secret = true, .example = "${JWT_SECRET}"});
    v.key("public_key", x.public_key,
          {.doc = "PEM file with the public key for RS, PS and ES algorithms and EdDSA.",
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/jwt.pem"});
    v.key("jwks", x.jwks,
          {.doc = "JWKS file with the keys, for any algorithm.",
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/jwks.json"});
    v.key("issuer", x.issuer,
          {.doc = "Required value of `iss`; absent: not checked.", .example = "https://login.example.com/"});
    v.key("audience", x.audience,
          {.doc = "`aud` must contain one of these; absent: not checked.", .one_or_many = true, .example = "[ api ]"});
    v.key("leeway", x.leeway, {.doc = "Clock difference tolerated in `exp` and `nbf`.", .max = us(10min)});
    v.key(
        "invalid", x.invalid,
        {.doc =
             "A request with an invalid token is answered 401 (refuse), or treated as one without a token (absent)."});
}

void describe(visitor& v, api_keys_config& x)
{
    v.key("file", x.file,
          {.doc = "The table, one line per key: SHA-256 of the key, user, plan. Read again on reload.",
           .required = true,
           .is_path = always,
           .what = "path",
           .example = "/etc/headgate/api-keys"});
}

void describe(visitor& v, key_config& x)
{
    v.key("sources", x.sources,
          {.doc = "Tried in order; the first that is present identifies the client.",
           .required = true,
           .example = "[ { header: X-API-Key }, client_ip ]"});
    v.key("missing", x.missing, {.doc = "When no source is present: one shared counter, 401, or the rule is skipped."});
    v.key(
        "new_identities", x.new_identities,
        {.doc =
             "A guard against invented identities: how many that this gateway has not seen within the limit's period a "
             "client's address may bring. Absent: any number.",
         .example = "100/hour"});
}

void describe(visitor& v, new_identities_config& x)
{
    v.key("limit", x.limit,
          {.doc = "How many new identities per period; an identity is new when it was not seen within this period.",
           .required = true,
           .example = "100/hour"});
    v.key("ipv4_prefix", x.ipv4_prefix,
          {.doc = "IPv4 addresses that share this many bits are charged together.", .min = 8, .max = 32});
    v.key("ipv6_prefix", x.ipv6_prefix,
          {.doc = "IPv6 addresses that share this many bits are charged together.", .min = 16, .max = 128});
    v.key("max_identities", x.max_identities,
          {.doc = "How many identities are remembered, in about 24 bytes each, and how many addresses are counted.",
           .min = 1'000,
           .max = 100'000'000});
}

void describe(visitor& v, key_source& x)
{
    v.key("header", x.header,
          {.doc = "A request header.", .check = check_header_name, .what = "header name", .example = "X-API-Key"});
    v.key("cookie", x.cookie,
          {.doc = "A cookie.", .check = check_header_name, .what = "cookie name", .example = "session"});
    v.key("query", x.query, {.doc = "A query parameter.", .what = "parameter name", .example = "api_key"});
    v.key("path_param", x.path_param,
          {.doc = "A `{param}` of the route's path.", .check = check_name, .what = "parameter name", .example = "id"});
    v.key("jwt_claim", x.jwt_claim, {.doc = "A claim of a verified token.", .example = "sub"});
    v.key("client_ip", x.client_ip, {.doc = "The client's address, grouped by prefix."});
    v.key("api_key", x.api_key, {.doc = "The user to whom a table assigns the API key."});
    v.key("client_certificate", x.client_certificate, {.doc = "The TLS client certificate."});
}

void describe(visitor& v, jwt_claim_source& x)
{
    v.key("claim", x.claim, {.doc = "Name of the claim.", .required = true, .example = "sub"});
    v.key("provider", x.provider, {.doc = "Entry of `jwt`; may be omitted when there is only one."});
}

void describe(visitor& v, client_ip_source& x)
{
    v.key("ipv4_prefix", x.ipv4_prefix,
          {.doc = "IPv4 addresses that share this many bits are one client.", .min = 8, .max = 32});
    v.key("ipv6_prefix", x.ipv6_prefix,
          {.doc = "IPv6 addresses that share this many bits are one client.", .min = 16, .max = 128});
}

void describe(visitor& v, api_key_source& x)
{
    v.key("header", x.header,
          {.doc = "Header field with the API key.", .check = check_header_name, .what = "header name"});
    v.key("table", x.table, {.doc = "Entry of `api_keys`.", .required = true, .example = "customers"});
}

void describe(visitor& v, plans_config& x)
{
    v.key("names", x.names,
          {.doc = "The names of all plans.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "[ free, pro ]"});
    v.key("default", x.default_plan,
          {.doc = "The plan when no source names one.", .required = true, .what = "name of a plan", .example = "free"});
    v.key("sources", x.sources,
          {.doc = "Where the plan of a request is read; the first that is present.",
           .example = "[ { jwt_claim: plan } ]"});
    v.key("overrides", x.overrides,
          {.doc = "Plans of single identities; they take precedence over the sources.",
           .what = "name of a plan",
           .example = "{ X-API-Key=alice: pro }"});
}

void describe(visitor& v, chain_config& x)
{
    v.key("store", x.store,
          {.doc = "Entry of `stores`; may be omitted when there is only one.", .what = "name of a store"});
    v.key("rules", x.rules,
          {.doc = "Rules that are decided together.",
           .required = true,
           .example = "[ { name: minute, key: client_ip, algorithm: gcra, limit: 60/minute } ]"});
}

void describe(visitor& v, rule_config& x)
{
    using limiter::algorithm;
    v.key("name", x.name,
          {.doc = "Name in header fields, logs and metrics.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "minute"});
    v.key("key", x.key,
          {.doc = "What has a counter of its own: a key, route, host, method, client_ip; a list combines several.",
           .required = true,
           .one_or_many = true,
           .check = check_name,
           .what = "name of a key",
           .example = "[ user, route ]"});
    v.key("algorithm", x.algorithm, {.doc = "How requests are counted.", .required = true, .example = "token_bucket"});
    v.key(
        "limit", x.limit,
        {.doc = "How many per period; for concurrency, how many in flight.", .required = true, .example = "60/minute"});

    v.only_with("algorithm", "token_bucket, leaky_bucket or gcra",
                x.algorithm == algorithm::token_bucket || x.algorithm == algorithm::leaky_bucket ||
                    x.algorithm == algorithm::gcra);
    v.key("burst", x.burst,
          {.doc = "token_bucket: how many at once (default: the limit). leaky_bucket: how many beyond the first "
                  "(default 0). gcra: how many beyond the first (default: limit - 1).",
           .max = std::uint64_t{1} << 31U,
           .example = "100"});
    v.only_with("algorithm", "leaky_bucket", x.algorithm == algorithm::leaky_bucket);
    v.key(
        "capacity", x.capacity,
        {.doc = "How many at once, in place of burst + 1.", .min = 1, .max = std::uint64_t{1} << 31U, .example = "15"});
    v.key("delay", x.delay,
          {.doc = "Delay what exceeds the first 1 + N instead of refusing it; all: N is 0, none: refuse.",
           .example = "all"});
    v.only_with("algorithm", "token_bucket", x.algorithm == algorithm::token_bucket);
    v.key("initial", x.initial, {.doc = "Content of the bucket of a new key; default: full.", .example = "10"});
    v.only_with("algorithm", "fixed_window", x.algorithm == algorithm::fixed_window);
    v.key("align", x.align, {.doc = "When a window begins: with its first request, or with the clock."});
    v.key("time_zone", x.time_zone,
          {.doc = "Time zone in which day, week and month begin.", .what = "time zone", .example = "Europe/Paris"});
    v.for_all();

    v.key("cost", x.cost, {.doc = "What one request costs; default: 1."});
    v.key("unit", x.unit, {.doc = "What is counted, for response header fields."});
    v.key("count_refused", x.count_refused, {.doc = "Refused requests are charged too."});
    v.key("outcome", x.outcome, {.doc = "Charge or refund by the result of the request."});
    v.key("mode", x.mode, {.doc = "shadow: decided and logged, but never refusing."});
    v.key("plans", x.plans,
          {.doc = "Limits by plan; all other plans have `limit`.",
           .what = "limit, `unlimited` or `blocked`",
           .example = "{ pro: 600/minute }"});
    v.key("overrides", x.overrides,
          {.doc = "Limits of single identities, as in X-API-Key=alice or client_ip=203.0.113.7.",
           .what = "limit, `unlimited` or `blocked`",
           .example = "{ X-API-Key=alice: unlimited }"});
    v.key("on_outage", x.outage, {.doc = "Replaces the store's on_outage."});
}

void describe(visitor& v, cost_config& x)
{
    v.key("fixed", x.fixed,
          {.doc = "The same cost for every request.", .min = 1, .max = limiter::max_count, .example = "5"});
    v.key("header", x.header,
          {.doc = "A request header that contains the cost.",
           .check = check_header_name,
           .what = "header name",
           .example = "X-Cost"});
    v.key("max", x.max, {.doc = "Maximum cost that the header may set.", .min = 1, .max = limiter::max_count});
    v.key("default", x.fallback,
          {.doc = "Cost when the header is missing or the method is not listed.", .max = limiter::max_count});
    v.key("methods", x.methods,
          {.doc = "Cost by method.",
           .max = limiter::max_count,
           .check_key = check_method,
           .example = "{ GET: 1, POST: 5 }"});
    v.key("settle", x.settle,
          {.doc = "The cost is known after the response: the name of a response header, or response_bytes.",
           .check = check_header_name,
           .what = "header name or `response_bytes`",
           .example = "X-Tokens-Used"});
    v.key("reserve", x.reserve, {.doc = "Charged before the response is known.", .min = 1, .max = limiter::max_count});
}

void describe(visitor& v, outcome_config& x)
{
    v.key("charge", x.charge,
          {.doc = "Charge only these; absent: all.", .one_or_many = true, .example = "[ 401, 403 ]"});
    v.key("refund", x.refund,
          {.doc = "Return the charge of these.", .one_or_many = true, .example = "[ 5xx, upstream_failure, timeout ]"});
}

bool struct_traits<cost_config>::load_short(load_context& l, const node& n, const std::string& path, cost_config& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    const key_options a{.min = 1, .max = limiter::max_count};
    type_of<std::uint64_t>().load(l, n, path, a, &x.fixed.emplace(1));
    return true;
}

void struct_traits<cost_config>::verify(load_context& l, const node& n, const std::string& path, const cost_config& x)
{
    const int ways =
        int(x.fixed.has_value()) + int(!x.header.empty()) + int(!x.methods.empty()) + int(!x.settle.empty());
    if (ways > 1)
        l.error(n, path, "a cost has only one source; keep one of fixed, header, methods, settle");
    if (ways == 0 && n.find("header") == nullptr && n.find("methods") == nullptr && n.find("settle") == nullptr &&
        n.find("fixed") == nullptr)
        l.error(n, path, "the cost has no source; give one of fixed, header, methods, settle, or a number");
    if (!x.header.empty() && x.fallback > x.max)
        l.error(n, path, "`default` is above `max`; lower it");
}

bool struct_traits<jwt_claim_source>::load_short(load_context& l, const node& n, const std::string& path,
                                                 jwt_claim_source& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    type_of<std::string>().load(l, n, path, {}, &x.claim);
    return true;
}

bool struct_traits<key_source>::load_short(load_context& l, const node& n, const std::string& path, key_source& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    type_of<std::string>().load(l, n, path, {.check = check_name}, &x.name);
    return true;
}

void struct_traits<key_source>::verify(load_context& l, const node& n, const std::string& path, const key_source&)
{
    // Counts the written keys, so that a source with an invalid value is not reported as empty too.
    if (n.entries.size() > 1)
        l.error(
            n, path,
            "a source has exactly one key; for several sources write a list, `- { header: X }` then `- { cookie: y }`");
    if (n.entries.empty())
        l.error(n, path, "this source is empty; write e.g. `{ header: X-API-Key }` or `client_ip`");
}

bool struct_traits<new_identities_config>::load_short(load_context& l, const node& n, const std::string& path,
                                                      new_identities_config& x)
{
    if (!n.is(node_kind::scalar))
        return false;
    type_of<limit_value>().load(l, n, path, {}, &x.limit);
    return true;
}

json struct_traits<new_identities_config>::short_schema() { return type_of<limit_value>().schema({}); }

bool struct_traits<key_config>::load_short(load_context& l, const node& n, const std::string& path, key_config& x)
{
    if (!n.is(node_kind::sequence))
        return false;
    type_of<std::vector<key_source>>().load(l, n, path, {}, &x.sources);
    return true;
}

json struct_traits<key_config>::short_schema() { return type_of<std::vector<key_source>>().schema({}); }

} // namespace headgate::config
