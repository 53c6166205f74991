// Chains and their rules.
#include "config/checks.hpp"
#include "config/describe.hpp"
#include "config/shapes.hpp"
#include "config/units.hpp"

namespace headgate::config {

void describe(visitor& v, chain_config& x)
{
    v.key("store", x.store,
          {.doc = "Which entry of `stores`; may be left out when there is only one.", .what = "name of a store"});
    v.key("rules", x.rules,
          {.doc = "Judged together.",
           .required = true,
           .example = "[ { name: minute, key: client_ip, algorithm: gcra, limit: 60/minute } ]"});
}

void describe(visitor& v, rule_config& x)
{
    using limiter::algorithm;
    v.key("name", x.name,
          {.doc = "In headers, logs and metrics.",
           .required = true,
           .check = check_name,
           .what = "name",
           .example = "minute"});
    v.key("key", x.key,
          {.doc = "Whose counter: a key, route, host, method, client_ip; a list is a composite.",
           .required = true,
           .one_or_many = true,
           .check = check_name,
           .what = "name of a key",
           .example = "[ user, route ]"});
    v.key("algorithm", x.algorithm, {.doc = "How it counts.", .required = true, .example = "token_bucket"});
    v.key("limit", x.limit,
          {.doc = "How many in which time; for concurrency, how many in flight.",
           .required = true,
           .example = "60/minute"});

    v.only_with("algorithm", "token_bucket, leaky_bucket or gcra",
                x.algorithm == algorithm::token_bucket || x.algorithm == algorithm::leaky_bucket ||
                    x.algorithm == algorithm::gcra);
    v.key("burst", x.burst,
          {.doc = "token_bucket: the most at once (default: the limit). leaky_bucket: beyond the first (default 0). "
                  "gcra: beyond the first (default: limit - 1).",
           .max = std::uint64_t{1} << 31U,
           .example = "100"});
    v.only_with("algorithm", "leaky_bucket", x.algorithm == algorithm::leaky_bucket);
    v.key(
        "capacity", x.capacity,
        {.doc = "The most at once, in place of burst + 1.", .min = 1, .max = std::uint64_t{1} << 31U, .example = "15"});
    v.key(
        "delay", x.delay,
        {.doc = "Let what goes beyond the first 1 + N wait its turn; all: 0, none: refuse instead.", .example = "all"});
    v.only_with("algorithm", "token_bucket", x.algorithm == algorithm::token_bucket);
    v.key("initial", x.initial,
          {.doc = "What a key never seen starts with; a full bucket when not said.", .example = "10"});
    v.only_with("algorithm", "fixed_window", x.algorithm == algorithm::fixed_window);
    v.key("align", x.align, {.doc = "A window begins with its first call, or with the clock."});
    v.key("time_zone", x.time_zone,
          {.doc = "Where day, week and month begin.", .what = "time zone", .example = "Europe/Paris"});
    v.for_all();

    v.key("cost", x.cost, {.doc = "What one request takes of the limit; 1 when not said."});
    v.key("unit", x.unit, {.doc = "What is counted, for the headers."});
    v.key("count_refused", x.count_refused, {.doc = "Refused requests count too."});
    v.key("outcome", x.outcome, {.doc = "Charge by what came of the request."});
    v.key("mode", x.mode, {.doc = "shadow: judged and logged, never refusing."});
    v.key("plans", x.plans,
          {.doc = "Limits by plan; else `limit`.",
           .what = "limit, `unlimited` or `blocked`",
           .example = "{ pro: 600/minute }"});
    v.key("overrides", x.overrides,
          {.doc = "Limits of single key values.",
           .what = "limit, `unlimited` or `blocked`",
           .example = "{ alice: unlimited }"});
    v.key("on_outage", x.outage, {.doc = "In place of the store's on_outage."});
}

void describe(visitor& v, cost_config& x)
{
    v.key("fixed", x.fixed,
          {.doc = "The same for every request.", .min = 1, .max = limiter::max_count, .example = "5"});
    v.key("header", x.header,
          {.doc = "A request header that says it.",
           .check = check_header_name,
           .what = "header name",
           .example = "X-Cost"});
    v.key("max", x.max, {.doc = "The most such a header may say.", .min = 1, .max = limiter::max_count});
    v.key("default", x.fallback,
          {.doc = "When the header is missing or the method is not listed.", .max = limiter::max_count});
    v.key(
        "methods", x.methods,
        {.doc = "By method.", .max = limiter::max_count, .check_key = check_method, .example = "{ GET: 1, POST: 5 }"});
    v.key("settle", x.settle,
          {.doc = "Known after the answer: a response header, or response_bytes.",
           .check = check_header_name,
           .what = "header name or `response_bytes`",
           .example = "X-Tokens-Used"});
    v.key("reserve", x.reserve, {.doc = "Taken before the answer is known.", .min = 1, .max = limiter::max_count});
}

void describe(visitor& v, outcome_config& x)
{
    v.key("charge", x.charge,
          {.doc = "Only these count; absent: all.", .one_or_many = true, .example = "[ 401, 403 ]"});
    v.key("refund", x.refund,
          {.doc = "These are given back.", .one_or_many = true, .example = "[ 5xx, upstream_failure, timeout ]"});
}

} // namespace headgate::config
