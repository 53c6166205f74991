// One description per struct: its keys in the order of the documentation, and its short form if it has one. See
// config/description.hpp for how they are used.
#pragma once

#include "config/model.hpp"
#include "config/types.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace headgate::config {

// Bounds as the numbers that key_options holds.
constexpr std::uint64_t us(std::chrono::microseconds d) { return static_cast<std::uint64_t>(d.count()); }
constexpr std::uint64_t kib(std::uint64_t n) { return n * 1024; }

// Which texts are paths.
inline bool always(std::string_view) { return true; }
inline bool unless_dash_or_off(std::string_view text) { return text != "-" && text != "off"; }

// describe_gateway.cpp
void describe(visitor& v, gateway_config& x);
void describe(visitor& v, tls_config& x);
void describe(visitor& v, listener_limits& x);
void describe(visitor& v, listener_timeouts& x);
void describe(visitor& v, listener_config& x);
void describe(visitor& v, admin_config& x);
void describe(visitor& v, access_log_config& x);
void describe(visitor& v, log_config& x);
void describe(visitor& v, request_id_config& x);
void describe(visitor& v, forwarding_config& x);
void describe(visitor& v, snapshot_config& x);
void describe(visitor& v, redis_tls_config& x);
void describe(visitor& v, breaker_config& x);
void describe(visitor& v, lease_config& x);
void describe(visitor& v, store_config& x);
// describe_limits.cpp
void describe(visitor& v, jwt_config& x);
void describe(visitor& v, api_keys_config& x);
void describe(visitor& v, jwt_claim_source& x);
void describe(visitor& v, client_ip_source& x);
void describe(visitor& v, api_key_source& x);
void describe(visitor& v, key_source& x);
void describe(visitor& v, new_identities_config& x);
void describe(visitor& v, key_config& x);
void describe(visitor& v, plans_config& x);
void describe(visitor& v, cost_config& x);
void describe(visitor& v, outcome_config& x);
void describe(visitor& v, rule_config& x);
void describe(visitor& v, chain_config& x);
// describe_routes.cpp
void describe(visitor& v, upstream_timeouts& x);
void describe(visitor& v, pool_config& x);
void describe(visitor& v, upstream_config& x);
void describe(visitor& v, route_match& x);
void describe(visitor& v, header_edit& x);
void describe(visitor& v, header_edits& x);
void describe(visitor& v, rewrite_config& x);
void describe(visitor& v, exempt_config& x);
void describe(visitor& v, answers_config& x);
void describe(visitor& v, route_config& x);

// The `answers` of a route replace parts of the top-level ones.
template <>
struct struct_traits<answers_config>
{
    static void prepare(load_context& l, answers_config& x) { x = l.answers; }
    static bool load_short(load_context&, const node&, const std::string&, answers_config&) { return false; }
    static json short_schema() { return nullptr; }
    static json default_value(const answers_config&) { return nullptr; }
    static std::string short_type_name() { return {}; }
    static void verify(load_context& l, const node&, const std::string& path, const answers_config& x)
    {
        if (path == "answers")
            l.answers = x;
    }
};

// cost: 5
template <>
struct struct_traits<cost_config>
{
    static void prepare(load_context&, cost_config&) {}
    static bool load_short(load_context& l, const node& n, const std::string& path, cost_config& x);
    static json short_schema() { return {{"type", {"integer", "string"}}}; }
    static json default_value(const cost_config& x) { return x.fixed.value_or(1); }
    static std::string short_type_name() { return "a whole number"; }
    static void verify(load_context& l, const node& n, const std::string& path, const cost_config& x);
};

// jwt_claim: sub
template <>
struct struct_traits<jwt_claim_source>
{
    static void prepare(load_context&, jwt_claim_source&) {}
    static bool load_short(load_context& l, const node& n, const std::string& path, jwt_claim_source& x);
    static json short_schema() { return {{"type", "string"}}; }
    static json default_value(const jwt_claim_source&) { return nullptr; }
    static std::string short_type_name() { return "a claim's name"; }
    static void verify(load_context&, const node&, const std::string&, const jwt_claim_source&) {}
};

// - client_ip
template <>
struct struct_traits<key_source>
{
    static void prepare(load_context&, key_source&) {}
    static bool load_short(load_context& l, const node& n, const std::string& path, key_source& x);
    static json short_schema() { return {{"type", "string"}}; }
    static json default_value(const key_source&) { return nullptr; }
    static std::string short_type_name() { return "route, host, method, client_ip or another key's name"; }
    static void verify(load_context& l, const node& n, const std::string& path, const key_source& x);
};

// new_identities: 100/hour
template <>
struct struct_traits<new_identities_config>
{
    static void prepare(load_context&, new_identities_config&) {}
    static bool load_short(load_context& l, const node& n, const std::string& path, new_identities_config& x);
    static json short_schema();
    static json default_value(const new_identities_config&) { return nullptr; }
    static std::string short_type_name() { return "a limit"; }
    static void verify(load_context&, const node&, const std::string&, const new_identities_config&) {}
};

// user: [ { header: X-API-Key }, client_ip ]
template <>
struct struct_traits<key_config>
{
    static void prepare(load_context&, key_config&) {}
    static bool load_short(load_context& l, const node& n, const std::string& path, key_config& x);
    static json short_schema();
    static json default_value(const key_config&) { return nullptr; }
    static std::string short_type_name() { return "a list of sources"; }
    static void verify(load_context&, const node&, const std::string&, const key_config&) {}
};

} // namespace headgate::config
