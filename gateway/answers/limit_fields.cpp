#include "gateway/answers/limit_fields.hpp"

#include "gateway/answers/limit_outcome.hpp"

#include <optional>

namespace headgate {

namespace {

std::uint64_t ceil_seconds(limiter::microseconds t)
{
    const auto us = static_cast<std::uint64_t>(t.count()); // unsigned: the longest wait is the end of time
    return (us + 999'999) / 1'000'000;
}

std::uint64_t window_seconds(const limiter::rule& rule)
{
    return std::max<std::uint64_t>(1, ceil_seconds(rule.period));
}

// Calls `each` with the number of every rule that clients may see.
template <class Each>
void each_shown(const limit_outcome& limit, Each each)
{
    for (std::size_t i = 0; i < limit.count; ++i) {
        if (!limit.rules[i]->shadow && !limit.rules[i]->unlimited)
            each(i);
    }
}

// Returns whether `text` was prepared for this rule. During a reload the rule may be newer than the text.
bool is_written_out(const limiter::rule& rule, const rule_text* text) { return text != nullptr && text->rule == &rule; }

void append_policy_of(http::byte_buffer& out, std::string_view before, const limiter::rule& rule, const rule_text* text)
{
    if (is_written_out(rule, text))
        return out.append(before, text->policy);
    out.append(before);
    append_policy(out, rule, text != nullptr ? text->unit : config::cost_unit::requests);
}

void append_quota_of(http::byte_buffer& out, std::string_view before, const limiter::rule& rule, const rule_text* text,
                     const limiter::decision& decided)
{
    std::string_view name;
    if (is_written_out(rule, text)) {
        name = text->quoted_name();
    } else {
        out.append(std::exchange(before, {}));
        append_sf_string(out, rule.name);
    }
    const auto until = decided.admitted ? decided.reset_after : decided.retry_after;
    if (until >= limiter::microseconds{0})
        out.append(before, name, ";r=", http::decimal{decided.remaining}, ";t=", http::decimal{ceil_seconds(until)});
    else
        out.append(before, name, ";r=", http::decimal{decided.remaining});
}

// RateLimit-Policy: "minute";q=60;w=60, "day";q=10000;w=86400
// RateLimit: "minute";r=0;t=12, "day";r=412;t=36000
void append_ietf(http::byte_buffer& out, const limit_outcome& limit)
{
    std::string_view before = "RateLimit-Policy: ";
    each_shown(limit, [&](std::size_t i) {
        append_policy_of(out, std::exchange(before, ", "), *limit.rules[i], limit.texts[i]);
    });
    if (before != ", ")
        return;
    before = "\r\nRateLimit: ";
    each_shown(limit, [&](std::size_t i) {
        append_quota_of(out, std::exchange(before, ", "), *limit.rules[i], limit.texts[i], limit.decisions[i]);
    });
    out.append("\r\n");
}

// The one quota that the dialects with three fields show.
struct shown_quota
{
    std::uint64_t limit;
    std::uint64_t remaining;
    limiter::microseconds reset; // `never`: not shown
};

std::optional<shown_quota> nearest_to_refusing(const limit_outcome& limit)
{
    if (const auto i = find_refusing_rule(limit); i != no_rule)
        return shown_quota{limit.decisions[i].limit, limit.decisions[i].remaining, limit.decisions[i].retry_after};
    const limiter::decision* nearest = nullptr;
    each_shown(limit, [&](std::size_t i) {
        const auto& decided = limit.decisions[i];
        if (nearest == nullptr || decided.remaining < nearest->remaining ||
            (decided.remaining == nearest->remaining && decided.reset_after > nearest->reset_after))
            nearest = &decided;
    });
    if (nearest == nullptr)
        return std::nullopt;
    if (limit.refused) // blocked by an operator: nothing remains, although the rule itself would admit more
        return shown_quota{nearest->limit, 0, limit.retry_after};
    return shown_quota{nearest->limit, nearest->remaining, nearest->reset_after};
}

// Appends draft-03's list of policies: `, 60;w=60, 10000;w=86400`. Concurrency limits have no window and are left out.
void append_windows(http::byte_buffer& out, const limit_outcome& limit, bool named)
{
    each_shown(limit, [&](std::size_t i) {
        const auto& rule = *limit.rules[i];
        if (rule.kind == limiter::algorithm::concurrency)
            return;
        out.append(", ");
        out.append_number(rule.count);
        out.append(";w=");
        out.append_number(window_seconds(rule));
        if (named) {
            out.append(";name=");
            append_sf_string(out, rule.name);
        }
    });
}

struct triple_names
{
    std::string_view limit, remaining, reset; // the line up to the value
};
constexpr triple_names ietf_names{"RateLimit-Limit: ", "\r\nRateLimit-Remaining: ", "\r\nRateLimit-Reset: "};
constexpr triple_names x_names{"X-RateLimit-Limit: ", "\r\nX-RateLimit-Remaining: ", "\r\nX-RateLimit-Reset: "};
constexpr triple_names envoy_names{"x-ratelimit-limit: ", "\r\nx-ratelimit-remaining: ", "\r\nx-ratelimit-reset: "};

enum class windows
{
    untold,
    listed,
    named
};

// Resets are counted from `zero`.
void append_triple(http::byte_buffer& out, const limit_outcome& limit, const triple_names& names, windows policies,
                   limiter::microseconds zero = {})
{
    const auto quota = nearest_to_refusing(limit);
    if (!quota)
        return;
    out.append(names.limit);
    out.append_number(quota->limit);
    if (policies != windows::untold)
        append_windows(out, limit, policies == windows::named);
    out.append(names.remaining);
    out.append_number(quota->remaining);
    if (quota->reset >= limiter::microseconds{0}) {
        out.append(names.reset);
        out.append_number(ceil_seconds(zero + quota->reset));
    }
    out.append("\r\n");
}

} // namespace

void append_limit_fields(http::byte_buffer& out, const limit_outcome& limit, const config::answers_config& answers,
                         limiter::time_point now)
{
    switch (answers.dialect) {
    case config::answer_dialect::ietf:
        return append_ietf(out, limit);
    case config::answer_dialect::ietf_triple:
        return append_triple(out, limit, ietf_names, windows::listed);
    case config::answer_dialect::x_ratelimit:
        return append_triple(out, limit, x_names, windows::untold,
                             answers.reset == config::reset_form::epoch ? now.time_since_epoch()
                                                                        : limiter::microseconds{0});
    case config::answer_dialect::envoy:
        return append_triple(out, limit, envoy_names, windows::named);
    case config::answer_dialect::off:
        return;
    }
}

void append_policy(http::byte_buffer& out, const limiter::rule& rule, config::cost_unit unit)
{
    append_sf_string(out, rule.name);
    out.append(";q=");
    out.append_number(rule.count);
    if (rule.kind == limiter::algorithm::concurrency) {
        out.append(";qu=\"concurrent-requests\"");
        return;
    }
    if (unit == config::cost_unit::bytes)
        out.append(";qu=\"content-bytes\"");
    else if (unit == config::cost_unit::tokens)
        out.append(";qu=\"tokens\""); // not a registered unit: none is registered for cost
    out.append(";w=");
    out.append_number(window_seconds(rule));
}

void append_sf_string(http::byte_buffer& out, std::string_view text)
{
    out.append('"');
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out.append('\\');
        out.append(c);
    }
    out.append('"');
}

std::size_t find_refusing_rule(const limit_outcome& limit)
{
    std::size_t longest = no_rule;
    limiter::microseconds wait{0};
    each_shown(limit, [&](std::size_t i) {
        const auto& decided = limit.decisions[i];
        if (decided.admitted || wait == limiter::never)
            return;
        if (longest == no_rule || decided.retry_after == limiter::never || decided.retry_after > wait) {
            longest = i;
            wait = decided.retry_after;
        }
    });
    return longest;
}

std::uint64_t retry_after_seconds(limiter::microseconds wait) { return std::max<std::uint64_t>(1, ceil_seconds(wait)); }

} // namespace headgate
