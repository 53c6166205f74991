// Identity: tokens, API keys, keys and plans.
#include "config/checks.hpp"
#include "config/describe.hpp"
#include "config/shapes.hpp"
#include "config/units.hpp"

namespace headgate::config {

void describe(visitor& v, jwt_config& x)
{
    v.key("algorithms", x.algorithms,
          {.doc = "Signatures that are accepted; `none` never is.",
           .required = true,
           .one_or_many = true,
           .example = "[ RS256 ]"});
    v.key("header", x.header, {.doc = "Where the token stands; `Bearer ` is taken off.", .check = check_header_name});
    v.key("secret", x.secret, {.doc = "Shared secret, HS family.", .is_secret = true, .example = "${JWT_SECRET}"});
    v.key("public_key", x.public_key,
          {.doc = "PEM file, RS, PS, ES families and EdDSA.", .what = "path", .example = "/etc/headgate/jwt.pem"});
    v.key("jwks", x.jwks, {.doc = "JWKS file, any family.", .what = "path", .example = "/etc/headgate/jwks.json"});
    v.key("issuer", x.issuer,
          {.doc = "What `iss` must be; absent: not checked.", .example = "https://login.example.com/"});
    v.key("audience", x.audience,
          {.doc = "One of these must be in `aud`; absent: not checked.", .one_or_many = true, .example = "[ api ]"});
    v.key("leeway", x.leeway, {.doc = "Clock difference forgiven on `exp` and `nbf`.", .max = us(10min)});
    v.key("invalid", x.invalid, {.doc = "A bad token is answered 401, or treated as if there were none."});
}

void describe(visitor& v, api_keys_config& x)
{
    v.key("file", x.file,
          {.doc = "The table: a key's SHA-256, user and plan a line; read again on reload.",
           .required = true,
           .what = "path",
           .example = "/etc/headgate/api-keys"});
}

void describe(visitor& v, key_config& x)
{
    v.key("sources", x.sources,
          {.doc = "Tried in order; the first that is present names the key.",
           .required = true,
           .example = "[ { header: X-API-Key }, client_ip ]"});
    v.key("missing", x.missing, {.doc = "When no source is present: one shared counter, 401, or the rule is skipped."});
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
    v.key("client_ip", x.client_ip, {.doc = "The client's address, in groups."});
    v.key("api_key", x.api_key, {.doc = "The user that a table names for a key."});
    v.key("client_certificate", x.client_certificate, {.doc = "The TLS client certificate."});
}

void describe(visitor& v, jwt_claim_source& x)
{
    v.key("claim", x.claim, {.doc = "The claim's name.", .required = true, .example = "sub"});
    v.key("provider", x.provider, {.doc = "Which entry of `jwt`; may be left out when there is only one."});
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
    v.key("header", x.header, {.doc = "Where the key stands.", .check = check_header_name, .what = "header name"});
    v.key("table", x.table, {.doc = "Which entry of `api_keys`.", .required = true, .example = "customers"});
}

void describe(visitor& v, plans_config& x)
{
    v.key("names", x.names,
          {.doc = "Every plan there is.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "[ free, pro ]"});
    v.key("default", x.default_plan,
          {.doc = "The plan when no source names one.", .required = true, .what = "name of a plan", .example = "free"});
    v.key("sources", x.sources,
          {.doc = "Where a request's plan is read; the first that is present.", .example = "[ { jwt_claim: plan } ]"});
    v.key("overrides", x.overrides,
          {.doc = "Plans of single key values, before any source.",
           .what = "name of a plan",
           .example = "{ alice: pro }"});
}

} // namespace headgate::config
