// The enumerations of the configuration, each with its names in the order of the enumerators.
#pragma once

#include "limiter/core/rule.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace headgate::config {

template <std::size_t N>
using name_list = std::array<std::string_view, N>;

enum class client_certificate
{
    none,
    optional,
    required
};
constexpr name_list<3> names_of(client_certificate) { return {"none", "optional", "required"}; }

enum class tls_version
{
    tls1_2,
    tls1_3
};
constexpr name_list<2> names_of(tls_version) { return {"1.2", "1.3"}; }

enum class log_level
{
    debug,
    info,
    warning,
    error
};
constexpr name_list<4> names_of(log_level) { return {"debug", "info", "warning", "error"}; }

enum class access_format
{
    json,
    combined
};
constexpr name_list<2> names_of(access_format) { return {"json", "combined"}; }

enum class x_forwarded
{
    append,
    replace,
    off
};
constexpr name_list<3> names_of(x_forwarded) { return {"append", "replace", "off"}; }

enum class client_address_source
{
    peer,
    x_forwarded_for,
    forwarded
};
constexpr name_list<3> names_of(client_address_source) { return {"peer", "x_forwarded_for", "forwarded"}; }

enum class underscore_headers
{
    drop,
    refuse,
    keep
};
constexpr name_list<3> names_of(underscore_headers) { return {"drop", "refuse", "keep"}; }

enum class store_type
{
    memory,
    redis
};
constexpr name_list<2> names_of(store_type) { return {"memory", "redis"}; }

enum class on_outage
{
    local,
    open,
    closed
};
constexpr name_list<3> names_of(on_outage) { return {"local", "open", "closed"}; }

enum class jwt_algorithm
{
    HS256,
    HS384,
    HS512,
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    ES512,
    EdDSA
};
constexpr name_list<13> names_of(jwt_algorithm)
{
    return {"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256",
            "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
}

enum class invalid_token
{
    refuse,
    absent
};
constexpr name_list<2> names_of(invalid_token) { return {"refuse", "absent"}; }

enum class missing_key
{
    anonymous,
    refuse,
    skip
};
constexpr name_list<3> names_of(missing_key) { return {"anonymous", "refuse", "skip"}; }

enum class certificate_part
{
    subject,
    fingerprint
};
constexpr name_list<2> names_of(certificate_part) { return {"subject", "fingerprint"}; }

enum class rule_mode
{
    enforce,
    shadow
};
constexpr name_list<2> names_of(rule_mode) { return {"enforce", "shadow"}; }

enum class cost_unit
{
    requests,
    bytes,
    tokens
};
constexpr name_list<3> names_of(cost_unit) { return {"requests", "bytes", "tokens"}; }

enum class forward_path
{
    normalised,
    as_received
};
constexpr name_list<2> names_of(forward_path) { return {"normalised", "as_received"}; }

enum class answer_dialect
{
    ietf,
    ietf_triple,
    x_ratelimit,
    envoy,
    off
};
constexpr name_list<5> names_of(answer_dialect) { return {"ietf", "ietf-triple", "x-ratelimit", "envoy", "off"}; }

enum class reset_form
{
    delta,
    epoch
};
constexpr name_list<2> names_of(reset_form) { return {"delta", "epoch"}; }

enum class upstream_fields
{
    keep,
    replace,
    merge
};
constexpr name_list<3> names_of(upstream_fields) { return {"keep", "replace", "merge"}; }

// Keys that are defined without an entry in `keys`.
constexpr bool is_builtin_key(std::string_view name)
{
    return name == "route" || name == "host" || name == "method" || name == "client_ip";
}

template <class E>
constexpr std::string_view name_of(E value)
{
    return names_of(value)[static_cast<std::size_t>(value)];
}

} // namespace headgate::config

// Found by argument-dependent lookup, so they stand beside their enums.
namespace headgate::limiter {

constexpr std::array<std::string_view, 7> names_of(algorithm)
{
    return {"token_bucket", "leaky_bucket", "gcra", "fixed_window", "sliding_window", "sliding_log", "concurrency"};
}
constexpr std::array<std::string_view, 2> names_of(window_align) { return {"first", "clock"}; }

} // namespace headgate::limiter
