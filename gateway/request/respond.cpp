#include "gateway/request/respond.hpp"

#include "gateway/answers/explain.hpp"
#include "gateway/answers/limit_fields.hpp"
#include "gateway/answers/refusal_body.hpp"

#include <optional>

namespace headgate {

namespace {

// Only a body that can be read to its end leaves the connection in a known state.
bool wants_keep_alive(session& client, const exchange& x)
{
    return x.framing.keep_alive && !client.owner().is_draining() && client.can_drop_body(x);
}

// What Retry-After says; nothing when no wait helps. The jitter only ever adds: who waits this long passes.
std::optional<std::uint64_t> seconds_to_wait(worker& owner, const exchange& x)
{
    if (x.limit.retry_after == limiter::never)
        return std::nullopt;
    const auto jitter = static_cast<std::uint64_t>(x.route->answers->config->retry_jitter.count());
    const auto more = jitter == 0 ? 0 : owner.any_up_to(jitter);
    constexpr limiter::microseconds longest = std::chrono::hours{24 * 366 * 100};
    return retry_after_seconds(std::min(x.limit.retry_after, longest) + limiter::microseconds(more));
}

} // namespace

std::optional<bool> sending_own::now()
{
    sent_ = piece_.now();
    if (!sent_)
        return std::nullopt;
    if (!*sent_ || !keep_)
        return false;
    return x_.body_done ? std::optional(true) : std::nullopt;
}

task<bool> sending_own::later()
{
    bool sent = sent_.value_or(false);
    if (!sent_)
        sent = co_await piece_.later();
    if (!sent || !keep_)
        co_return false;
    if (x_.body_done)
        co_return true;
    const bool dropped = co_await client_.drop_body(x_);
    co_return dropped;
}

own_answer answer_error(session& client, exchange& x, http::http_error error)
{
    auto& owner = client.owner();
    const auto& about = http::describe(error);
    const bool keep = !about.closes && wants_keep_alive(client, x);
    x.outcome.error = error;
    x.out.clear();
    http::error_response_options options{
        .date = owner.http_date(),
        .request_id = x.request_id_view(),
        .request_id_header = x.setup->request_id_header.text,
        .keep_alive = keep,
        .http_1_0 = x.head().minor_version == 0,
        .head_request = x.head().method_number == http::method_id::head,
    };
    if (error == http::http_error::method_not_allowed) {
        auto& allow = x.body_text;
        allow.clear();
        allow.append("Allow: ");
        if (x.match.allowed_methods != 0)
            x.setup->router.append_allow(allow, x.match.allowed_methods);
        else
            allow.append("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"); // CONNECT or TRACE, which no route can allow
        allow.append("\r\n");
        options.extra_fields = allow.view();
    }
    if (error == http::http_error::store_unavailable)
        options.extra_fields = "Retry-After: 1\r\n"; // it is asked again about as often
    if (error == http::http_error::missing_key)      // RFC 9110 §15.5.2: a 401 says what it wants
        options.extra_fields = "WWW-Authenticate: ApiKey\r\n";
    if (error == http::http_error::bad_token)
        options.extra_fields = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
    http::append_error_response(x.out, error, options);
    x.begin_answer(about.status, x.out.view().find("\r\n\r\n") + 4);
    return own_answer(sending_own(client, x, keep));
}

own_answer answer_empty(session& client, exchange& x)
{
    const bool keep = wants_keep_alive(client, x);
    x.out.clear();
    x.out.append("HTTP/1.1 200 OK\r\nDate: ", client.owner().http_date(), "\r\nContent-Length: 0\r\n",
                 x.limit_fields.view());
    x.out.append(keep ? "\r\n" : "Connection: close\r\n\r\n");
    x.begin_answer(200, x.out.size());
    return own_answer(sending_own(client, x, keep));
}

void tell_limits(exchange& x, limiter::time_point now)
{
    const auto& answers = *x.route->answers;
    append_limit_fields(x.limit_fields, x.limit, *answers.config, now);
    x.quota_bytes = x.limit_fields.size();
    if (!answers.explain_networks.empty() && x.head().fields.has(http::field_id::x_ratelimit_explain) &&
        answers.explain_networks.contains(x.client.address))
        append_explanation(x.limit_fields, x.limit);
}

own_answer answer_refusal(session& client, exchange& x)
{
    const auto& answers = *x.route->answers;
    // Who is refused by counters that others share has not used up a quota of their own (behaviours §5).
    const auto status = x.limit.degraded ? 503U : static_cast<unsigned>(answers.config->status);
    const bool keep = wants_keep_alive(client, x);
    const auto wait = seconds_to_wait(client.owner(), x);
    x.body_text.clear();
    append_refusal_body(x.body_text, answers, x.limit, status, wait);

    auto& out = x.out;
    out.clear();
    out.append(x.limit.degraded ? std::string_view("HTTP/1.1 503 Service Unavailable\r\n") : answers.refusal_line,
               "Date: ", client.owner().http_date(), "\r\n", answers.refusal_fields,
               "Content-Length: ", http::decimal{x.body_text.size()}, "\r\n");
    if (wait)
        out.append("Retry-After: ", http::decimal{*wait}, "\r\n");
    std::string_view end = "\r\n";
    if (!keep)
        end = "Connection: close\r\n\r\n";
    else if (x.head().minor_version == 0)
        end = "Connection: keep-alive\r\n\r\n";
    out.append(x.limit_fields.view(), end);
    x.begin_answer(status, out.size());
    auto body = x.head().method_number == http::method_id::head ? std::string_view{} : x.body_text.view();
    http::join_small(out, body);
    return own_answer(sending_own(client, x, keep, body));
}

} // namespace headgate
