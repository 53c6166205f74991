#include "gateway/compiled/rule_terms.hpp"

#include "gateway/http/parameters.hpp"
#include "gateway/http/text.hpp"
#include "gateway/request/request.hpp"

#include <algorithm>

namespace headgate {

namespace {

using http::http_error;

constexpr std::string_view response_bytes = "response_bytes";

bool is_all_digits(std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), http::is_digit);
}

bool matches(const std::vector<config::outcome_match>& list, const request_record& ended)
{
    using enum http_error;
    const bool failed = ended.error != none && http::describe(ended.error).to_blame == http::culprit::upstream;
    const bool timed_out = ended.error == upstream_timeout || ended.error == upstream_connect_timeout ||
                           ended.error == upstream_idle_timeout;
    return std::any_of(list.begin(), list.end(), [&](const config::outcome_match& match) {
        if (match.upstream_failure)
            return failed;
        if (match.timeout)
            return timed_out;
        const auto status = static_cast<int>(ended.status);
        return status >= match.first && status <= match.last;
    });
}

// Returns whether the outcome is charged. When the client has left, the status is unknown and the request is charged:
// leaving early must not avoid the charge.
bool is_charged(const config::outcome_config& outcome, const request_record& ended)
{
    if (matches(outcome.refund, ended))
        return false;
    return outcome.charge.empty() || ended.status == 0 || matches(outcome.charge, ended);
}

} // namespace

bool rule_terms::is_settled_later(const config::cost_config* of_route) const
{
    const auto* by = cost ? &*cost : of_route;
    return in_flight || outcome || (by && !by->settle.empty());
}

rule_terms make_terms(const config::rule_config& rule)
{
    rule_terms terms;
    const auto& cost = rule.cost;
    if (cost.fixed || !cost.header.empty() || !cost.methods.empty() || !cost.settle.empty())
        terms.cost = cost;
    terms.outcome = rule.outcome;
    terms.in_flight = rule.rule.kind == limiter::algorithm::concurrency;
    return terms;
}

http_error read_cost(const config::cost_config* cost, const http::request_head& head, std::uint64_t& out)
{
    out = 1;
    if (!cost)
        return http_error::none;
    out = cost->fixed.value_or(cost->fallback);
    if (!cost->settle.empty())
        out = cost->reserve;
    if (!cost->methods.empty()) {
        if (const auto by_method = cost->methods.find(std::string(head.method)); by_method != cost->methods.end())
            out = by_method->second;
    }
    if (cost->header.empty())
        return http_error::none;
    std::string_view text;
    const auto found = http::find_only_line(head.fields, cost->header, text);
    if (found == http::parameter_state::absent)
        return http_error::none;
    if (found == http::parameter_state::repeated || !is_all_digits(text))
        return http_error::bad_cost;
    std::uint64_t declared = cost->max;
    http::parse_decimal(text, declared);                     // a number that does not fit is above the maximum too
    out = std::clamp<std::uint64_t>(declared, 1, cost->max); // a client cannot declare its request free
    return http_error::none;
}

declared_cost read_settled_cost(const config::cost_config& cost, const http::response_head& answer)
{
    if (cost.settle.empty() || cost.settle == response_bytes)
        return {};
    std::string_view text;
    const auto found = http::find_only_line(answer.fields, cost.settle, text);
    if (found == http::parameter_state::absent)
        return {};
    std::uint64_t declared = 0;
    if (found == http::parameter_state::repeated)
        return {.unreadable = "(repeated)"};
    if (!http::parse_decimal(text, declared))
        return {.unreadable = text.empty() ? "(empty)" : text};
    return {.cost = std::min(declared, limiter::max_count)};
}

std::uint64_t cost_by_head(const rule_terms& terms, std::uint64_t charged, std::optional<std::uint64_t> settled,
                           const request_record& so_far)
{
    if (terms.in_flight)
        return charged;
    if (terms.outcome && !is_charged(*terms.outcome, so_far))
        return 0;
    return settled.value_or(charged);
}

std::uint64_t final_cost(const rule_terms& terms, const config::cost_config* cost, std::uint64_t charged,
                         std::optional<std::uint64_t> settled, const request_record& ended)
{
    if (terms.in_flight || (terms.outcome && !is_charged(*terms.outcome, ended)))
        return 0;
    if (ended.status == 0)
        return charged; // no answer was received: leaving early is not free
    if (cost && cost->settle == response_bytes)
        return ended.body_out;
    return settled.value_or(charged); // without a cost in the answer the estimate stays
}

} // namespace headgate
