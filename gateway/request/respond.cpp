#include "gateway/request/respond.hpp"

#include "gateway/answers/explain.hpp"
#include "gateway/answers/limit_fields.hpp"
#include "gateway/answers/refusal_body.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/settle.hpp"
#include "gateway/worker.hpp"

#include <optional>

namespace headgate {

namespace {

using http::decimal;
using http::http_error;

http::byte_buffer& begin_fields(request& r)
{
    auto& fields = r.memory->answer_fields;
    fields.clear();
    append_own_fields(fields.text(), r);
    return fields.text();
}

void append_allow(request& r, http::byte_buffer& text)
{
    text.append("Allow: ");
    if (r.received.allowed_methods != 0)
        r.config().router.append_allow(text, r.received.allowed_methods);
    else
        text.append("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"); // CONNECT or TRACE, which no route can allow
    text.append("\r\n");
}

// The fields that belong to one error only.
void append_fields_of(request& r, http_error error, http::byte_buffer& text)
{
    if (error == http_error::method_not_allowed)
        append_allow(r, text);
    if (error == http_error::store_unavailable)
        text.append("Retry-After: 1\r\n"); // it is asked again about as often
    // RFC 9110 §15.5.2: a 401 says what it wants.
    if (error == http_error::missing_key || error == http_error::unknown_key)
        text.append(r.limits.refusing_key->challenges);
    if (error == http_error::bad_token)
        text.append("WWW-Authenticate: Bearer error=\"invalid_token\"\r\n");
}

// Returns what Retry-After says, or nothing when no wait helps. The jitter only ever adds: a client that waits this
// long passes.
std::optional<std::uint64_t> seconds_to_wait(const request& r)
{
    const auto& outcome = r.limits.outcome;
    if (outcome.retry_after == limiter::never)
        return std::nullopt;
    const auto jitter = static_cast<std::uint64_t>(r.received.route->answers->config->retry_jitter.count());
    const auto more = jitter == 0 ? 0 : r.worker.any_up_to(jitter);
    constexpr limiter::microseconds longest = std::chrono::hours{24 * 366 * 100};
    return retry_after_seconds(std::min(outcome.retry_after, longest) + limiter::microseconds(more));
}

} // namespace

void append_own_fields(http::byte_buffer& text, const request& r)
{
    const auto& id = r.config().request_id_header;
    text.append("Date: ", r.worker.http_date(), "\r\n");
    if (!id.empty())
        text.append(id.text, ": ", r.received.id, "\r\n");
}

task<> send_own_answer(request& r, unsigned status, bool closes)
{
    const auto body = r.memory->own_body.view();
    http::answer_head head{.status = status, .fields = &r.memory->answer_fields, .length = body.size()};
    head.has_body = r.head().method_number != http::method_id::head;
    head.drops_request_body = true;
    head.closes = closes;
    r.record.status = status;
    const auto pieces = head.has_body ? body_pieces(&body, 1) : body_pieces();
    const bool is_sent = co_await r.client.send_head(head, pieces, true);
    if (!is_sent && r.record.error == http_error::none)
        r.record.error = http_error::client_gone;
}

task<> respond_error(request& r, http_error error)
{
    const auto& about = http::describe(error);
    auto& text = begin_fields(r);
    text.append("Content-Type: application/problem+json\r\nCache-Control: no-store\r\n");
    r.memory->answer_fields.place_framing();
    append_fields_of(r, error, text);
    note_error(r, error);
    text.append(r.memory->limit_fields.view()); // of a decision that was made before the error
    r.memory->own_body.clear();
    http::append_error_body(r.memory->own_body, error, r.received.id);
    r.record.error = error;
    return send_own_answer(r, about.status, about.closes);
}

task<> respond_refusal(request& r)
{
    const auto& answers = *r.received.route->answers;
    const auto& outcome = r.limits.outcome;
    const auto status = refusal_status(outcome, *answers.config);
    const auto wait = seconds_to_wait(r);
    auto& text = begin_fields(r);
    text.append(answers.refusal_fields);
    r.memory->answer_fields.place_framing();
    if (wait)
        text.append("Retry-After: ", decimal{*wait}, "\r\n");
    text.append(r.memory->limit_fields.view());
    r.memory->own_body.clear();
    append_refusal_body(r.memory->own_body, answers, outcome, status, wait);
    if (outcome.blocked.rules)
        r.record.error = http_error::blocked;
    return send_own_answer(r, status);
}

task<> respond_empty(request& r)
{
    auto& text = begin_fields(r);
    r.memory->answer_fields.place_framing();
    text.append(r.memory->limit_fields.view());
    r.memory->own_body.clear();
    return send_own_answer(r, 200);
}

void write_limit_fields(request& r, limiter::time_point now)
{
    const auto& answers = *r.received.route->answers;
    const auto& outcome = r.limits.outcome;
    auto& out = r.memory->limit_fields;
    out.clear();
    append_limit_fields(out, outcome, *answers.config, now + r.worker.clock().wall_ahead());
    r.limits.quota_bytes = out.size();
    if (!answers.explain_networks.empty() && r.head().fields.has(http::field_id::x_ratelimit_explain) &&
        answers.explain_networks.contains(r.received.client.address))
        append_explanation(out, outcome);
}

} // namespace headgate
