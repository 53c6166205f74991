// The quota fields of answers, compared byte by byte, without a gateway.
#include "gateway/answers/explain.hpp"
#include "gateway/answers/limit_fields.hpp"
#include "gateway/answers/limit_outcome.hpp"
#include "gateway/answers/refusal_body.hpp"
#include "gateway/compiled/answers.hpp"

#include <doctest/doctest.h>

#include <deque>

using namespace headgate;
using namespace std::chrono_literals;
using config::answer_dialect;
using limiter::algorithm;
using limiter::never;

namespace {

struct rule_decision
{
    limiter::rule rule;
    limiter::decision decided;
    config::cost_unit unit = config::cost_unit::requests;
};

limiter::rule rule(const std::string& name, std::uint64_t count, limiter::microseconds period,
                   algorithm kind = algorithm::token_bucket)
{
    return {.name = name, .kind = kind, .count = count, .period = period, .capacity = count};
}

limiter::rule in_flight(const std::string& name, std::uint64_t count)
{
    return {.name = name, .kind = algorithm::concurrency, .count = count};
}

limiter::rule shadow(limiter::rule of)
{
    of.shadow = true;
    return of;
}

limiter::decision passed(std::uint64_t limit, std::uint64_t remaining, limiter::microseconds reset)
{
    return {.admitted = true, .limit = limit, .remaining = remaining, .reset_after = reset};
}

limiter::decision refused(std::uint64_t limit, std::uint64_t remaining, limiter::microseconds wait)
{
    return {.admitted = false, .limit = limit, .remaining = remaining, .retry_after = wait, .reset_after = 60s};
}

// An outcome with the rules that it points to. With `written_out`, the rules have prepared texts, as in a
// configuration.
class outcome
{
public:
    explicit outcome(const std::vector<rule_decision>& all, bool written_out = true)
    {
        for (const auto& one : all) {
            const auto& kept = rules_.emplace_back(one.rule);
            auto& text_of_rule = texts_.emplace_back();
            text_of_rule.rule = &kept;
            text_of_rule.unit = one.unit;
            text_of_rule.chain = "api";
            http::byte_buffer text;
            append_policy(text, kept, one.unit);
            text_of_rule.policy = text.view();
            text_of_rule.quoted_name_size = kept.name.size() + 2;
            text_of_rule.limit_words = std::to_string(kept.count) + " in words";
            limit.rules[limit.count] = &kept;
            limit.texts[limit.count] = written_out ? &text_of_rule : nullptr;
            limit.decisions[limit.count++] = one.decided;
            limit.refused = limit.refused || (!one.decided.admitted && !kept.shadow);
        }
    }
    outcome(const outcome&) = delete;

    std::string fields(answer_dialect dialect, config::reset_form reset = config::reset_form::delta) const
    {
        http::byte_buffer out;
        const limiter::time_point now{1'700'000'000s + 1us};
        append_limit_fields(out, limit, {.dialect = dialect, .reset = reset}, now);
        return std::string(out.view());
    }
    std::string body(const config::answers_config& answers, std::optional<std::uint64_t> wait) const
    {
        http::byte_buffer out;
        append_refusal_body(out, compiled_answers(answers), limit, refusal_status(limit, answers), wait);
        return std::string(out.view());
    }
    // As if an operator had blocked the key of the first rule.
    void block(limiter::microseconds wait)
    {
        blocked_.texts.push_back(texts_.front());
        limit.refused = true;
        limit.retry_after = wait;
        limit.blocked = {&blocked_, limit.rules[0], "k"};
    }
    std::string explanation() const
    {
        http::byte_buffer out;
        append_explanation(out, limit);
        return std::string(out.view());
    }

private:
    judged_rules judged_{};

public:
    limit_outcome limit{judged_};

private:
    std::deque<limiter::rule> rules_;
    std::deque<rule_text> texts_;
    compiled_rules blocked_;
};

const auto minute = rule("minute", 60, 1min);
const auto day = rule("day", 10000, 24h, algorithm::fixed_window);

struct row
{
    std::string what;
    std::vector<rule_decision> rules;
    std::string ietf, triple, x, envoy;
};

} // namespace

TEST_CASE("limit fields: the fields of each dialect, byte by byte")
{
    const std::vector<row> rows = {
        {"the rule with the least left is the one of the triples",
         {{minute, passed(60, 12, 48s)}, {day, passed(10000, 412, 36000s)}},
         "RateLimit-Policy: \"minute\";q=60;w=60, \"day\";q=10000;w=86400\r\n"
         "RateLimit: \"minute\";r=12;t=48, \"day\";r=412;t=36000\r\n",
         "RateLimit-Limit: 60, 60;w=60, 10000;w=86400\r\nRateLimit-Remaining: 12\r\nRateLimit-Reset: 48\r\n",
         "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 12\r\nX-RateLimit-Reset: 48\r\n",
         "x-ratelimit-limit: 60, 60;w=60;name=\"minute\", 10000;w=86400;name=\"day\"\r\n"
         "x-ratelimit-remaining: 12\r\nx-ratelimit-reset: 48\r\n"},
        {"of two with as little left, the one that takes longer",
         {{minute, passed(60, 0, 48s)}, {day, passed(10000, 0, 36000s)}},
         "RateLimit-Policy: \"minute\";q=60;w=60, \"day\";q=10000;w=86400\r\n"
         "RateLimit: \"minute\";r=0;t=48, \"day\";r=0;t=36000\r\n",
         "RateLimit-Limit: 10000, 60;w=60, 10000;w=86400\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 36000\r\n",
         "X-RateLimit-Limit: 10000\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 36000\r\n",
         "x-ratelimit-limit: 10000, 60;w=60;name=\"minute\", 10000;w=86400;name=\"day\"\r\n"
         "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 36000\r\n"},
        {"a refusal tells of the rule with the longest wait, whole seconds, rounded up",
         {{day, passed(10000, 0, 36000s)},
          {minute, refused(60, 0, 900ms)},
          {rule("hour", 9, 1h), refused(9, 2, 11s + 1us)}},
         "RateLimit-Policy: \"day\";q=10000;w=86400, \"minute\";q=60;w=60, \"hour\";q=9;w=3600\r\n"
         "RateLimit: \"day\";r=0;t=36000, \"minute\";r=0;t=1, \"hour\";r=2;t=12\r\n",
         "RateLimit-Limit: 9, 10000;w=86400, 60;w=60, 9;w=3600\r\nRateLimit-Remaining: 2\r\nRateLimit-Reset: 12\r\n",
         "X-RateLimit-Limit: 9\r\nX-RateLimit-Remaining: 2\r\nX-RateLimit-Reset: 12\r\n",
         "x-ratelimit-limit: 9, 10000;w=86400;name=\"day\", 60;w=60;name=\"minute\", 9;w=3600;name=\"hour\"\r\n"
         "x-ratelimit-remaining: 2\r\nx-ratelimit-reset: 12\r\n"},
        {"when no wait helps, none is shown",
         {{minute, refused(60, 60, never)}, {day, refused(10000, 1, 5s)}},
         "RateLimit-Policy: \"minute\";q=60;w=60, \"day\";q=10000;w=86400\r\nRateLimit: \"minute\";r=60, "
         "\"day\";r=1;t=5\r\n",
         "RateLimit-Limit: 60, 60;w=60, 10000;w=86400\r\nRateLimit-Remaining: 60\r\n",
         "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 60\r\n",
         "x-ratelimit-limit: 60, 60;w=60;name=\"minute\", 10000;w=86400;name=\"day\"\r\nx-ratelimit-remaining: 60\r\n"},
        {"shadow rules are never shown",
         {{shadow(day), refused(10000, 0, 9s)}, {minute, passed(60, 59, 1s)}},
         "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=59;t=1\r\n",
         "RateLimit-Limit: 60, 60;w=60\r\nRateLimit-Remaining: 59\r\nRateLimit-Reset: 1\r\n",
         "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 1\r\n",
         "x-ratelimit-limit: 60, 60;w=60;name=\"minute\"\r\nx-ratelimit-remaining: 59\r\nx-ratelimit-reset: 1\r\n"},
        {"only shadow rules: nothing", {{shadow(day), passed(10000, 0, 9s)}}, "", "", "", ""},
        {"no rules: nothing", {}, "", "", "", ""},
        {"units other than requests have a name, and requests in flight no window",
         {{in_flight("at-once", 10), passed(10, 9, 0s)},
          {rule("upload", 1048576, 1h), passed(1048576, 524288, 30min), config::cost_unit::bytes},
          {rule("llm", 5000, 1min), passed(5000, 4000, 12s), config::cost_unit::tokens}},
         "RateLimit-Policy: \"at-once\";q=10;qu=\"concurrent-requests\", "
         "\"upload\";q=1048576;qu=\"content-bytes\";w=3600, \"llm\";q=5000;qu=\"tokens\";w=60\r\n"
         "RateLimit: \"at-once\";r=9;t=0, \"upload\";r=524288;t=1800, \"llm\";r=4000;t=12\r\n",
         "RateLimit-Limit: 10, 1048576;w=3600, 5000;w=60\r\nRateLimit-Remaining: 9\r\nRateLimit-Reset: 0\r\n",
         "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 9\r\nX-RateLimit-Reset: 0\r\n",
         "x-ratelimit-limit: 10, 1048576;w=3600;name=\"upload\", 5000;w=60;name=\"llm\"\r\n"
         "x-ratelimit-remaining: 9\r\nx-ratelimit-reset: 0\r\n"},
        {"a window below a second is shown as one",
         {{rule("fast", 5, 100ms), passed(5, 4, 20ms)}},
         "RateLimit-Policy: \"fast\";q=5;w=1\r\nRateLimit: \"fast\";r=4;t=1\r\n",
         "RateLimit-Limit: 5, 5;w=1\r\nRateLimit-Remaining: 4\r\nRateLimit-Reset: 1\r\n",
         "X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 4\r\nX-RateLimit-Reset: 1\r\n",
         "x-ratelimit-limit: 5, 5;w=1;name=\"fast\"\r\nx-ratelimit-remaining: 4\r\nx-ratelimit-reset: 1\r\n"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.what);
        const outcome o(row.rules);
        CHECK(o.fields(answer_dialect::ietf) == row.ietf);
        CHECK(o.fields(answer_dialect::ietf_triple) == row.triple);
        CHECK(o.fields(answer_dialect::x_ratelimit) == row.x);
        CHECK(o.fields(answer_dialect::envoy) == row.envoy);
        CHECK(o.fields(answer_dialect::off) == "");
    }
}

TEST_CASE("limit fields: an epoch reset is a time of day in whole seconds, rounded up")
{
    const auto epoch = [](const limiter::decision& decided) {
        return outcome({{minute, decided}}).fields(answer_dialect::x_ratelimit, config::reset_form::epoch);
    };
    const std::string quota = "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 0\r\n";
    CHECK(epoch(passed(60, 0, 10s)) == quota + "X-RateLimit-Reset: 1700000011\r\n");
    CHECK(epoch(refused(60, 0, 10s - 1us)) == quota + "X-RateLimit-Reset: 1700000010\r\n");
    CHECK(epoch(refused(60, 0, never)) == quota);
}

TEST_CASE("limit fields: a rule that a reload has just changed is shown with its new values")
{
    const std::vector<rule_decision> rules = {{minute, passed(60, 12, 48s)}, {day, refused(10000, 0, 7s)}};
    const outcome written(rules), unknown(rules, false);
    CHECK(unknown.fields(answer_dialect::ietf) == written.fields(answer_dialect::ietf));

    outcome changed({{minute, passed(60, 12, 48s), config::cost_unit::bytes}});
    const auto raised = rule("minute", 90, 1min);
    changed.limit.rules[0] = &raised;
    CHECK(changed.fields(answer_dialect::ietf) ==
          "RateLimit-Policy: \"minute\";q=90;qu=\"content-bytes\";w=60\r\nRateLimit: \"minute\";r=12;t=48\r\n");
}

TEST_CASE("limit fields: a key that an operator has blocked has nothing left until the block ends")
{
    outcome o({{minute, passed(60, 12, 48s)}});
    o.block(90s);
    CHECK(find_refusing_rule(o.limit) == no_rule);
    CHECK(o.fields(answer_dialect::x_ratelimit) ==
          "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 90\r\n");
    CHECK(o.fields(answer_dialect::ietf) ==
          "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: \"minute\";r=12;t=48\r\n");
}

TEST_CASE("limit fields: Retry-After is whole seconds, rounded up, at least one")
{
    CHECK(retry_after_seconds(0us) == 1);
    CHECK(retry_after_seconds(1us) == 1);
    CHECK(retry_after_seconds(1s) == 1);
    CHECK(retry_after_seconds(1s + 1us) == 2);
}

TEST_CASE("explain: every evaluated rule, shadow rules included, with its decision")
{
    const outcome o({{minute, passed(60, 12, 48s)},
                     {shadow(day), refused(10000, 0, 1234567us)},
                     {rule("burst", 5, 1s, algorithm::gcra), refused(5, 0, 10ms)},
                     {in_flight("at-once", 10), refused(10, 3, never)}});
    CHECK(o.explanation() ==
          "X-RateLimit-Explain: rule=\"minute\"; chain=\"api\"; algorithm=token_bucket; limit=60; remaining=12; "
          "verdict=passed; reset_after=48.000, "
          "rule=\"day\"; chain=\"api\"; algorithm=fixed_window; limit=10000; remaining=0; verdict=shadow_refused; "
          "retry_after=1.235; reset_after=60.000, "
          "rule=\"burst\"; chain=\"api\"; algorithm=gcra; limit=5; remaining=0; verdict=refused; retry_after=0.010; "
          "reset_after=60.000, "
          "rule=\"at-once\"; chain=\"api\"; algorithm=concurrency; limit=10; remaining=3; verdict=refused; "
          "retry_after=never; reset_after=60.000\r\n");
    CHECK(outcome({}).explanation() == "");
}

TEST_CASE("explain: an operator's block is the verdict of the key's first rule, with the rest of the block")
{
    outcome o({{minute, passed(60, 12, 48s)}, {day, passed(10000, 1, 1s)}});
    o.block(90s);
    CHECK(o.explanation() ==
          "X-RateLimit-Explain: rule=\"minute\"; chain=\"api\"; algorithm=token_bucket; limit=60; remaining=12; "
          "verdict=blocked; retry_after=90.000; reset_after=48.000, "
          "rule=\"day\"; chain=\"api\"; algorithm=fixed_window; limit=10000; remaining=1; verdict=passed; "
          "reset_after=1.000\r\n");
}

TEST_CASE("refusal body: problem+json names the rules that refused, not those that admitted and not shadow rules")
{
    const outcome o({{minute, refused(60, 0, 1s)}, {shadow(day), refused(10000, 0, 9s)}, {day, passed(10000, 1, 1s)}});
    CHECK(
        o.body({.status = 503}, 1) ==
        R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request quota exceeded",)"
        R"("status":503,"violated-policies":["minute"]})"
        "\n");
}

TEST_CASE("refusal body: a template names the rule with the longest wait; an unknown value is a dash")
{
    const config::answers_config own{.body = "x", .body_template = "{rule}|{limit}|{wait}"};
    CHECK(outcome({{minute, refused(60, 0, 1s)}, {day, refused(10000, 0, 9s)}}).body(own, 9) == "day|10000 in words|9");
    CHECK(outcome({{minute, refused(60, 0, 5s)}, {day, refused(10000, 0, 5s)}}).body(own, 5) == "minute|60 in words|5");
    CHECK(outcome({{minute, refused(60, 0, never)}, {day, refused(10000, 0, 9s)}}).body(own, {}) ==
          "minute|60 in words|-");
    CHECK(outcome({{minute, refused(60, 0, 5s)}}, false).body(own, 5) == "minute|60|5"); // a reload has just added it
}

TEST_CASE("refusal body: an operator's block violates no rule and says so")
{
    outcome o({{minute, passed(60, 12, 48s)}});
    o.block(90s);
    CHECK(refusal_status(o.limit, {}) == 403);
    CHECK(o.body({}, 90) == R"({"type":"urn:headgate:error:blocked","title":"Blocked for now","status":403})"
                            "\n");
    CHECK(o.body({.body = "x", .body_template = "{rule}|{limit}|{wait}"}, 90) == "blocked|-|90");
}

TEST_CASE("refusal body: a block takes precedence over a rule that refuses as well")
{
    outcome o({{minute, refused(60, 0, 1s)}});
    o.block(90s);
    CHECK(refusal_status(o.limit, {.status = 429}) == 403);
    CHECK(o.body({}, 90).find("urn:headgate:error:blocked") != std::string::npos);
    CHECK(o.body({.body = "x", .body_template = "{rule}|{limit}|{wait}"}, 90) == "blocked|-|90");
}
