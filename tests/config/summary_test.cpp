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
        {"algorithm: sliding_window, limit: 100 per 90s", "100 per 90s for each user, in any period of that length"},
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
                                       "upstreams\n"
                                       "  demo: the built-in echo\n");
}
