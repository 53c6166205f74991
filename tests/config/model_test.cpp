// The limiter's rules that are built from the configuration, and defaults.
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;
using headgate::limiter::calendar_unit;
using namespace std::chrono_literals;

namespace {

headgate::limiter::rule rule_of(const std::string& words)
{
    const auto result = load(with_rule(words));
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    return result.config->chains.at("api").rules.at(0).rule;
}

} // namespace

TEST_CASE("burst: each bucket algorithm derives its capacity")
{
    CHECK(rule_of("algorithm: token_bucket, limit: 60/minute").capacity == 60);
    CHECK(rule_of("algorithm: token_bucket, limit: 60/minute, burst: 7").capacity == 7);
    CHECK(rule_of("algorithm: leaky_bucket, limit: 60/minute").capacity == 1);
    CHECK(rule_of("algorithm: leaky_bucket, limit: 60/minute, burst: 5").capacity == 6);
    CHECK(rule_of("algorithm: leaky_bucket, limit: 30/minute, capacity: 15").capacity == 15);
    CHECK(rule_of("algorithm: gcra, limit: 30/minute").capacity == 30);
    CHECK(rule_of("algorithm: gcra, limit: 30/minute, burst: 15").capacity == 16);
    CHECK(rule_of("algorithm: gcra, limit: 1 per 2s, burst: 0").capacity == 1);
}

TEST_CASE("initial is a full bucket by default")
{
    CHECK(rule_of("algorithm: token_bucket, limit: 60/minute").initial == 60);
    CHECK(rule_of("algorithm: token_bucket, limit: 60/minute, initial: 0").initial == 0);
}

TEST_CASE("delay: all waits beyond the first, N beyond 1 + N, none refuses")
{
    const std::string bucket = "algorithm: leaky_bucket, limit: 1/s, burst: 5";
    CHECK(rule_of(bucket).delay_after == std::nullopt);
    CHECK(rule_of(bucket + ", delay: none").delay_after == std::nullopt);
    CHECK(rule_of(bucket + ", delay: all").delay_after == 0);
    CHECK(rule_of(bucket + ", delay: 3").delay_after == 3);
}

TEST_CASE("day, week and month follow the calendar only in a fixed window that begins with the clock")
{
    CHECK(rule_of("algorithm: fixed_window, limit: 9/day").calendar == calendar_unit::day);
    CHECK(rule_of("algorithm: fixed_window, limit: 9/day").zone == nullptr);
    CHECK(rule_of("algorithm: fixed_window, limit: 9/day, align: first").calendar == calendar_unit::none);
    CHECK(rule_of("algorithm: token_bucket, limit: 9/month").period == 720h);
    CHECK(rule_of("algorithm: token_bucket, limit: 9/month").calendar == calendar_unit::none);
    const auto paris = rule_of("algorithm: fixed_window, limit: 9/week, time_zone: Europe/Paris");
    REQUIRE(paris.zone);
    CHECK(paris.zone->offset_at(std::chrono::sys_days(std::chrono::year(2030) / 7 / 1)) == 2h);
}

TEST_CASE("high and low rates are accepted: a million per second, one per month")
{
    CHECK(rule_of("algorithm: token_bucket, limit: 1000000/s").count == 1'000'000);
    CHECK(rule_of("algorithm: gcra, limit: 8000/s").count == 8000);
    CHECK(rule_of("algorithm: gcra, limit: 1/month").capacity == 1);
}

TEST_CASE("plans and overrides get rules of their own, except unlimited and blocked")
{
    const auto result = load_file("tests/data/config/good/full.yaml", test_environment());
    REQUIRE(result.config);
    const auto& rule = result.config->chains.at("api").rules.at(0);
    CHECK(rule.plan_rules.at("pro").count == 600);
    CHECK(rule.plan_rules.at("pro").capacity == 100); // the rule's own burst
    CHECK(!rule.plan_rules.contains("banned"));
    CHECK(rule.override_rules.at("user/api_key:X-Key=bob").period == 1s);
    CHECK(!rule.override_rules.contains("user/jwt_claim:sub@login=alice"));
}

TEST_CASE("a tunnel may be silent for an hour, for another time, or for ever")
{
    CHECK(upstream_timeouts{}.tunnel == std::chrono::hours{1});
    const auto result = load_file("tests/data/config/good/full.yaml", test_environment());
    REQUIRE(result.config);
    CHECK(result.config->upstreams.at("api").timeouts.tunnel == unlimited_duration);
}

TEST_CASE("a route's answers replace parts of the top-level ones")
{
    const auto result = load_file("tests/data/config/good/full.yaml", test_environment());
    REQUIRE(result.config);
    const auto& answers = result.config->routes.at(0).answers;
    REQUIRE(answers);
    CHECK(answers->dialect == answer_dialect::envoy);
    CHECK(answers->status == 503);
    CHECK(answers->body == "no thanks");
    CHECK(answers->content_type == "text/plain");
}

TEST_CASE("a body of a route replaces a body_file of the top level")
{
    const auto result = load_file("tests/data/config/good/refusal-body.yaml", test_environment());
    REQUIRE(result.config);
    const auto& general = result.config->answers;
    CHECK(general.body_template == "<p>{rule}: {limit}</p>\n"); // relative to the folder of the configuration
    const auto& own = *result.config->routes.at(0).answers;
    CHECK(own.body_template == "{rule}");
    CHECK(own.body_file == "");
    const auto& same = *result.config->routes.at(1).answers;
    CHECK(same.body_template == general.body_template);
    CHECK(same.body_file == general.body_file);
    CHECK(same.status == 503);
}

TEST_CASE("a chain without a store uses the only one")
{
    const auto result = load(with_rule("algorithm: gcra, limit: 5/s"));
    REQUIRE(result.config);
    CHECK(result.config->chains.at("api").store == "local");
}
