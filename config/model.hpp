// The whole configuration, typed, with its defaults. Every field has a key in config/describe*.cpp and an entry in
// gateway.yaml; tests compare them.
#pragma once

#include "config/choices.hpp"
#include "config/problem.hpp"
#include "config/values.hpp"
#include "limiter/core/rule.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headgate::config {

using namespace std::chrono_literals;

constexpr byte_size kibibytes(std::uint64_t n) { return {n * 1024}; }
constexpr byte_size mebibytes(std::uint64_t n) { return {n * 1024 * 1024}; }

// ---- listeners

struct tls_config
{
    std::string certificate; // PEM chain
    std::string key;         // PEM key
    std::string client_ca;   // CAs that sign client certificates
    client_certificate client_certificates = client_certificate::none;
    tls_version min_version = tls_version::tls1_2;
};

struct listener_limits
{
    byte_size request_line = kibibytes(8); // 414 beyond
    byte_size head = kibibytes(64);        // 431 beyond
    std::uint64_t fields = 100;            // 431 beyond
    byte_size body = mebibytes(10);        // 413 beyond
};

struct listener_timeouts
{
    duration head = 10s;      // first to last byte of the head
    duration body = 60s;      // between two parts of the body
    byte_size body_rate{256}; // minimum per second over the whole body; 0: none
    duration idle = 60s;      // keep-alive connection without a request
    duration write = 30s;     // the client reads nothing
};

struct listener_config
{
    host_port address;
    std::optional<tls_config> tls;
    bool proxy_protocol = false;
    std::uint64_t max_connections = 100'000;
    std::uint64_t max_connections_per_address = 0; // 0: unlimited
    listener_limits limits;
    listener_timeouts timeouts;
};

struct admin_config
{
    host_port address{"127.0.0.1", 9901};
    secret token;                   // required unless the address is a loopback address
    std::vector<std::string> hosts; // accepted in Host, besides IP addresses and localhost
};

// ---- logs and forwarding

struct access_log_config
{
    std::string path = "off"; // a file, "-" (stdout) or "off"
    access_format format = access_format::json;
};

struct log_config
{
    log_level level = log_level::info;
    access_log_config access;
};

struct request_id_config
{
    std::string header = "X-Request-Id"; // "off": no id
    bool keep = false;                   // keep an id that the client sends
};

struct forwarding_config
{
    std::string via = "headgate"; // the gateway's name in Via; "off": no Via
    x_forwarded x_forwarded_headers = x_forwarded::append;
    bool forwarded = false;                                                        // send RFC 7239 Forwarded as well
    client_address_source client_address = client_address_source::x_forwarded_for; // read only from trusted_proxies
    request_id_config request_id;
    bool merge_slashes = true;
    underscore_headers underscores = underscore_headers::drop;
    std::vector<std::string> trailers; // trailer fields that are forwarded
};

// ---- stores

struct snapshot_config
{
    std::string path;
    duration interval = 60s;

    bool operator==(const snapshot_config&) const = default;
};

struct redis_tls_config
{
    std::string ca;          // empty: the system's
    std::string certificate; // the gateway's, if the server requests one
    std::string key;
    std::string server_name; // empty: the host

    bool operator==(const redis_tls_config&) const = default;
};

struct breaker_config
{
    std::uint64_t failures = 5;   // consecutive failures that open it
    duration probe_interval = 1s; // one probe at a time while it is open

    bool operator==(const breaker_config&) const = default;
};

struct lease_config
{
    std::uint64_t share_percent = 10; // maximum share of the remaining quota
    duration max_age = 1s;

    bool operator==(const lease_config&) const = default;
};

struct store_config
{
    store_type type = store_type::memory;
    // memory
    std::uint64_t max_keys = 1'000'000;
    std::optional<snapshot_config> snapshot;
    // redis
    redis_url url;
    std::string username;
    secret password;
    duration timeout = 20ms; // maximum wait of a decision
    duration connect_timeout = 1s;
    on_outage outage = on_outage::open;  // will be local, once that is built
    std::uint64_t expected_gateways = 1; // in an outage the local limit is limit / this
    std::optional<redis_tls_config> tls;
    breaker_config breaker;
    std::optional<lease_config> lease;
    bool hash_keys = false; // identities are sent to Redis only as digests

    bool operator==(const store_config&) const = default;
};

// ---- identity

struct jwt_config
{
    std::vector<jwt_algorithm> algorithms;
    std::string header = "Authorization"; // a leading `Bearer ` is removed
    config::secret secret;                // for HS algorithms
    std::string public_key;               // PEM file, for the other algorithms
    std::string jwks;                     // JWKS file, for any algorithm
    std::string issuer;                   // empty: not checked
    std::vector<std::string> audience;    // empty: not checked
    duration leeway = 30s;                // on exp and nbf
    invalid_token invalid = invalid_token::refuse;
};

struct api_keys_config
{
    std::string file; // lines of: key hash, user, plan
};

struct jwt_claim_source
{
    std::string claim;
    std::string provider; // empty: the only one
};

struct client_ip_source
{
    std::uint64_t ipv4_prefix = 32;
    std::uint64_t ipv6_prefix = 64;
};

struct api_key_source
{
    std::string header = "X-API-Key";
    std::string table;
};

// Exactly one member is set.
struct key_source
{
    std::string name; // route, host, method, client_ip, or another key
    std::optional<std::string> header;
    std::optional<std::string> cookie;
    std::optional<std::string> query;
    std::optional<std::string> path_param;
    std::optional<jwt_claim_source> jwt_claim;
    std::optional<client_ip_source> client_ip;
    std::optional<api_key_source> api_key;
    std::optional<certificate_part> client_certificate;
};

// A guard against invented identities: a new one charges the client's address.
struct new_identities_config
{
    limit_value limit;
    std::uint64_t ipv4_prefix = 32; // addresses that share this many bits are charged together
    std::uint64_t ipv6_prefix = 64;
    std::uint64_t max_identities = 1'000'000; // that are remembered, and addresses that are counted

    limiter::rule rule; // built from the above
};

struct key_config
{
    std::vector<key_source> sources; // the first one that is present is used
    missing_key missing = missing_key::anonymous;
    std::optional<new_identities_config> new_identities;
};

struct plans_config
{
    std::vector<key_source> sources; // where the plan of a request is read
    std::vector<std::string> names;
    std::string default_plan;
    std::map<std::string, std::string> overrides; // key value -> plan
};

// ---- limits

// Bounds of what is decided per request. The limiter and the gateway reserve room for this much, so that a decision
// allocates no memory; gateway/compiled/config.cpp checks that their numbers are equal.
inline constexpr std::size_t max_chains_per_route = 8;
inline constexpr std::size_t max_keys_per_chain = 8;
inline constexpr std::size_t max_rules_per_key = 16; // of one chain
inline constexpr std::size_t max_rules_per_route = 128;

struct cost_config
{
    std::optional<std::uint64_t> fixed;           // the same for every request; default: 1
    std::string header;                           // read from this request header
    std::uint64_t max = 1'000;                    // maximum that the header may set
    std::uint64_t fallback = 1;                   // key `default`: header missing or method not listed
    std::map<std::string, std::uint64_t> methods; // by method
    std::string settle;                           // a response header's name, or response_bytes
    std::uint64_t reserve = 1;                    // charged before the response is known
};

struct outcome_config
{
    std::vector<outcome_match> charge; // empty: every status
    std::vector<outcome_match> refund;
};

// `delay:` of a leaky bucket.
struct delay_value
{
    enum class form
    {
        all,
        none,
        after
    };
    form what = form::none;
    std::uint64_t after = 0;
};

struct rule_config
{
    std::string name;
    std::vector<std::string> key; // one name, or a composite
    limiter::algorithm algorithm = limiter::algorithm::token_bucket;
    limit_value limit;
    std::optional<std::uint64_t> burst;
    std::optional<std::uint64_t> capacity;
    std::optional<std::uint64_t> initial;
    std::optional<delay_value> delay;
    limiter::window_align align = limiter::window_align::clock;
    std::string time_zone = "UTC";
    cost_config cost;
    cost_unit unit = cost_unit::requests;
    bool count_refused = false;
    std::optional<outcome_config> outcome;
    rule_mode mode = rule_mode::enforce;
    std::map<std::string, limit_value> plans;     // plan -> limit
    std::map<std::string, limit_value> overrides; // key value -> limit
    std::optional<on_outage> outage;              // empty: that of the store

    limiter::rule rule;                                  // built from the above
    std::map<std::string, limiter::rule> plan_rules;     // of the `plans` that are rates or counts
    std::map<std::string, limiter::rule> override_rules; // of the `overrides` that are rates or counts
};

struct chain_config
{
    std::string store;
    std::vector<rule_config> rules;
};

// ---- upstreams and routes

struct upstream_timeouts
{
    duration connect = 2s;
    duration first_byte = 60s;
    duration idle = 60s;  // between two parts of the response
    duration tunnel = 1h; // a WebSocket that both sides leave silent
    bool operator==(const upstream_timeouts&) const = default;
};

struct pool_config
{
    std::uint64_t size = 1'024;  // idle connections per worker
    duration idle_timeout = 60s; // then they are closed
    bool operator==(const pool_config&) const = default;
};

struct upstream_config
{
    bool echo = false; // answered in-process
    std::vector<host_port> servers;
    std::string host = "keep"; // keep, rewrite (the server's), or a name
    upstream_timeouts timeouts;
    std::uint64_t max_connections = 1'024; // per worker, to each server
    std::uint64_t max_pending = 1'024;     // per worker, requests that wait for a connection
    pool_config pool;
    bool operator==(const upstream_config&) const = default;
};

struct route_match
{
    std::vector<std::string> hosts;   // exact or *.example.com; empty: any
    std::vector<std::string> paths;   // /x, /api/*, /users/{id}, *.png; empty: any
    std::vector<std::string> methods; // empty: any
    std::map<std::string, std::string> headers;
};

struct header_edit
{
    std::map<std::string, std::string> add;
    std::map<std::string, std::string> set;
    std::vector<std::string> remove;
};

struct header_edits
{
    header_edit request;
    header_edit response;
};

struct rewrite_config
{
    std::string strip_prefix;
    std::string replace_prefix; // replaces strip_prefix
};

struct exempt_config
{
    std::vector<std::string> methods;
    std::vector<std::string> paths;
    std::vector<network> networks;
};

struct answers_config
{
    std::uint64_t status = 429;
    answer_dialect dialect = answer_dialect::ietf;
    reset_form reset = reset_form::delta; // x-ratelimit only
    std::string body;                     // template; empty: application/problem+json
    std::string body_file;                // file with the template, in place of `body`
    std::string content_type;             // media type of the body
    std::map<std::string, std::string> headers;
    upstream_fields upstream_headers = upstream_fields::replace;
    std::vector<network> explain_networks; // may request X-RateLimit-Explain
    duration retry_jitter = 0s;            // maximum addition to Retry-After

    std::string body_template; // `body`, or the content of `body_file`
    bool has_own_body() const { return !body.empty() || !body_file.empty(); }
};

struct route_config
{
    std::string name;
    route_match match;
    std::vector<std::string> chains;
    std::string upstream;
    std::optional<cost_config> cost; // for rules that set none
    header_edits headers;
    rewrite_config rewrite;
    forward_path path = forward_path::normalised;
    exempt_config exempt;
    std::optional<answers_config> answers; // complete: includes the top-level ones
};

struct gateway_config
{
    std::vector<std::string> include;
    std::uint64_t workers = 0; // 0: auto
    duration drain_timeout = 30s;
    std::vector<network> trusted_proxies;
    std::vector<listener_config> listeners;
    std::optional<admin_config> admin;
    log_config log;
    forwarding_config forwarding;
    std::map<std::string, store_config> stores;
    std::map<std::string, jwt_config> jwt;
    std::map<std::string, api_keys_config> api_keys;
    std::map<std::string, key_config> keys;
    std::optional<plans_config> plans;
    std::map<std::string, chain_config> chains;
    std::map<std::string, upstream_config> upstreams;
    answers_config answers;
    std::vector<route_config> routes; // first match wins

    std::shared_ptr<const config::places> places; // positions of the values, for later problems
};

} // namespace headgate::config
