#include "config/summary.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

std::string words_of(const std::string& rule)
{
    const auto result = load(with_rule(rule));
    CHECK(joined(result.problems) == "");
    return result.config ? in_words(result.config->chains.at("api").rules.at(0)) : "";
}

} // namespace

TEST_CASE("rules in words")
{
    const std::pair<const char*, const char*> rows[] = {
        {"algorithm: token_bucket, limit: 60/minute", "60 per minute for each user, at most 60 at once"},
        {"algorithm: leaky_bucket, limit: 5000/minute, burst: 500",
         "5000 per minute for each user, at most 501 at once"},
        {"algorithm: fixed_window, limit: 10000/day", "10000 per calendar day (UTC) for each user"},
        {"algorithm: fixed_window, limit: 5 per 10m, align: first",
         "5 per 10m for each user, counted from the first request"},
        {"algorithm: sliding_window, limit: 100 per 90s",
         "100 per 90s for each user, estimated from this window and the one before"},
        {"algorithm: sliding_log, limit: 100 per 90s", "100 per 90s for each user, in any period of that length"},
        {"algorithm: concurrency, limit: 10", "10 at the same time for each user"},
        {"algorithm: gcra, limit: 5/s, mode: shadow",
         "5 per second for each user, at most 5 at once (shadow: never refuses)"},
        {"algorithm: token_bucket, limit: 60/minute, cost: 5, count_refused: true",
         "60 per minute for each user, at most 60 at once, each request costs 5, refused requests are charged too"},
    };
    for (const auto& [rule, words] : rows)
        CHECK(words_of(rule) == words);
}

TEST_CASE("limits in words, as refusals show them")
{
    const std::pair<const char*, const char*> rows[] = {
        {"algorithm: token_bucket, limit: 60/minute, burst: 100", "60 per minute"},
        {"algorithm: fixed_window, limit: 10000/day", "10000 per calendar day (UTC)"},
        {"algorithm: concurrency, limit: 10", "10 at the same time"},
        {"algorithm: token_bucket, limit: 5000/hour, unit: tokens", "5000 tokens per hour"},
        {"algorithm: token_bucket, limit: 5000 per 90s, unit: bytes", "5000 bytes per 90s"},
    };
    for (const auto& [rule, words] : rows) {
        const auto result = load(with_rule(rule));
        REQUIRE(result.config);
        CHECK(limit_in_words(result.config->chains.at("api").rules.at(0)) == words);
    }
}

TEST_CASE("the summary of gateway.yaml")
{
    const auto result = load_file("gateway.yaml", test_environment());
    REQUIRE(result.config);
    CHECK(summarise(*result.config) == "listeners\n"
                                       "  127.0.0.1:8080\n"
                                       "trusted proxies\n"
                                       "  none: a client's address is that of its connection\n"
                                       "admin\n"
                                       "  127.0.0.1:9901\n"
                                       "stores\n"
                                       "  local: in memory, at most 1000000 keys\n"
                                       "routes, first match wins\n"
                                       "  1. all: /* -> api -> demo\n"
                                       "chains, each decided at once\n"
                                       "  api (store local)\n"
                                       "    minute: 60 per minute for each user, at most 60 at once\n"
                                       "    day: 10000 per calendar day (UTC) for each user\n"
                                       "new identities\n"
                                       "  user: 100 per hour for each address (IPv4 /32, IPv6 /64), at most 1000000 "
                                       "identities remembered\n"
                                       "upstreams\n"
                                       "  demo: the built-in echo\n");
}

TEST_CASE("the summary shows plans, overrides, exemptions, trusted proxies and the memory of stores")
{
    const auto result = load(
        "listeners: [ { address: 127.0.0.1:8080 } ]\n"
        "trusted_proxies: [ 10.0.0.0/8, 192.0.2.1 ]\n"
        "forwarding: { client_address: forwarded }\n"
        "stores: { local: { type: memory, max_keys: 5000 } }\n"
        "keys: { user: { sources: [ { header: X-API-Key }, client_ip ], new_identities: 10/minute } }\n"
        "plans: { names: [ free, pro ], default: free, sources: [ { header: X-Plan }, { cookie: plan } ], overrides: { "
        "X-API-Key=k1: pro } }\n"
        "chains: { api: { rules: [ { name: minute, key: user, algorithm: gcra, limit: 5/s, plans: { pro: 50/s }, "
        "overrides: { client_ip=203.0.113.7: unlimited } } ] } }\n"
        "upstreams: { demo: { echo: true } }\n"
        "routes: [ { name: all, chains: api, upstream: demo, match: { headers: { X-Secret: "
        "\"${HEADGATE_TEST_TOKEN}\" } }, exempt: { methods: [ OPTIONS, HEAD ], paths: /healthz, networks: "
        "10.0.0.0/8 } } ]\n");
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    CHECK(summarise(*result.config, {{"local", byte_size{13 * 1024 * 1024 + 1}}}) ==
          "listeners\n"
          "  127.0.0.1:8080\n"
          "trusted proxies\n"
          "  10.0.0.0/8, 192.0.2.1; the client's address: Forwarded\n"
          "stores\n"
          "  local: in memory, at most 5000 keys in 14 MiB\n"
          "routes, first match wins\n"
          "  1. all: everything with X-Secret: *** -> api -> demo\n"
          "     not limited: methods OPTIONS, HEAD; paths /healthz; networks 10.0.0.0/8\n"
          "chains, each decided at once\n"
          "  api (store local)\n"
          "    minute: 5 per second for each user, at most 5 at once, 1 plan with its own limit, 1 override\n"
          "      plan pro: 50/s\n"
          "      user/client_ip=203.0.113.7: unlimited\n"
          "plans\n"
          "  free, pro; the default is free\n"
          "  read from header:X-Plan, then cookie:plan\n"
          "plans of single identities, wherever their source identifies the request\n"
          "  user/header:X-API-Key=k1: pro\n"
          "new identities\n"
          "  user: 10 per minute for each address (IPv4 /32, IPv6 /64), at most 1000000 identities remembered\n"
          "upstreams\n"
          "  demo: the built-in echo\n");
}
