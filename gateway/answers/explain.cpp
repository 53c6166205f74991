#include "gateway/answers/explain.hpp"

#include "config/choices.hpp"
#include "gateway/answers/limit_fields.hpp"
#include "gateway/answers/limit_outcome.hpp"

namespace headgate {

namespace {

// Appends seconds with three decimals, rounded up: operators need more precision than clients.
void append_seconds(http::byte_buffer& out, limiter::microseconds t)
{
    const auto milliseconds = (static_cast<std::uint64_t>(t.count()) + 999) / 1000;
    const auto rest = milliseconds % 1000;
    out.append_number(milliseconds / 1000);
    out.append(rest < 10 ? ".00" : rest < 100 ? ".0" : ".");
    out.append_number(rest);
}

std::string_view verdict_of(const limiter::rule& rule, const limiter::decision& decided, bool is_blocked)
{
    if (is_blocked)
        return "blocked";
    if (decided.admitted)
        return "passed";
    return rule.shadow ? "shadow_refused" : "refused";
}

void append_names(http::byte_buffer& out, const limiter::rule& rule, const rule_text* text)
{
    out.append("rule=");
    append_sf_string(out, rule.name);
    if (text != nullptr) {
        out.append("; chain=");
        append_sf_string(out, text->chain);
    }
}

void append_item(http::byte_buffer& out, const limit_outcome& limit, std::size_t i)
{
    const auto& rule = *limit.rules[i];
    const auto& decided = limit.decisions[i];
    const bool is_blocked = limit.blocked.rule == &rule;
    append_names(out, rule, limit.texts[i]);
    out.append("; algorithm=", config::name_of(rule.kind), "; limit=");
    out.append_number(decided.limit);
    out.append("; remaining=");
    out.append_number(decided.remaining);
    out.append("; verdict=", verdict_of(rule, decided, is_blocked));
    if (!decided.admitted || is_blocked) {
        const auto wait = is_blocked ? limit.retry_after : decided.retry_after;
        out.append("; retry_after=");
        if (wait == limiter::never)
            out.append("never");
        else
            append_seconds(out, wait);
    }
    if (decided.reset_after >= limiter::microseconds{0}) {
        out.append("; reset_after=");
        append_seconds(out, decided.reset_after);
    }
}

} // namespace

void append_explanation(http::byte_buffer& out, const limit_outcome& limit)
{
    std::string_view before = "X-RateLimit-Explain: ";
    bool names_block = limit.blocked.rules == nullptr;
    for (std::size_t i = 0; i < limit.count; ++i) {
        out.append(std::exchange(before, ", "));
        append_item(out, limit, i);
        names_block = names_block || limit.rules[i] == limit.blocked.rule;
    }
    if (!names_block) { // by the configuration: its chain was not decided
        const auto& [rules, rule, _] = limit.blocked;
        out.append(std::exchange(before, ", "));
        append_names(out, *rule, rules->find_text(*rule, *rules->blocked_by));
        out.append("; verdict=blocked; retry_after=never");
    }
    if (before == ", ")
        out.append("\r\n");
}

} // namespace headgate
