#include "gateway/answers.hpp"

#include "gateway/limit_fields.hpp"
#include "gateway/session.hpp"

namespace headgate {

namespace {

// Only a body that can be read to its end leaves the connection in a known state.
bool wants_keep_alive(session& client, const exchange& x)
{
    return x.framing.keep_alive && !client.owner().is_draining() && client.can_drop_body(x);
}

// The answer does not wait for the body it refuses (L5); the next request does.
task<bool> send_and_drop_body(session& client, exchange& x, bool keep)
{
    const bool sent = co_await client.send(x.out.view());
    if (!sent || !keep)
        co_return false;
    const bool dropped = co_await client.drop_body(x);
    co_return dropped;
}

void append_violated(http::byte_buffer& out, const limit_outcome& limit)
{
    bool first = true;
    out.append("[");
    for (std::size_t i = 0; i < limit.count; ++i) {
        if (limit.decisions[i].admitted || limit.rules[i]->shadow)
            continue;
        out.append(first ? "\"" : ", \"");
        first = false;
        http::append_json_escaped(out, limit.rules[i]->name);
        out.append("\"");
    }
    out.append("]");
}

} // namespace

task<bool> answer_error(session& client, exchange& x, http::http_error error)
{
    auto& owner = client.owner();
    const auto& about = http::describe(error);
    const bool keep = !about.closes && wants_keep_alive(client, x);
    x.outcome.error = error;
    x.out.clear();
    http::error_response_options options{
        .date = owner.http_date(),
        .request_id = x.request_id_view(),
        .request_id_header = x.request_id_header,
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
    if (error == http::http_error::missing_key) // RFC 9110 §15.5.2: a 401 says what it wants
        options.extra_fields = "WWW-Authenticate: ApiKey\r\n";
    if (error == http::http_error::bad_token)
        options.extra_fields = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
    http::append_error_response(x.out, error, options);
    x.begin_answer(about.status, x.out.view().find("\r\n\r\n") + 4);
    const bool again = co_await send_and_drop_body(client, x, keep);
    co_return again;
}

task<bool> answer_empty(session& client, exchange& x)
{
    const bool keep = wants_keep_alive(client, x);
    x.out.clear();
    x.out.append("HTTP/1.1 200 OK\r\nDate: ", client.owner().http_date(), "\r\nContent-Length: 0\r\n",
                 x.limit_fields.view());
    x.out.append(keep ? "\r\n" : "Connection: close\r\n\r\n");
    x.begin_answer(200, x.out.size());
    const bool again = co_await send_and_drop_body(client, x, keep);
    co_return again;
}

task<bool> answer_refusal(session& client, exchange& x)
{
    auto& owner = client.owner();
    const auto status = static_cast<unsigned>(x.route->answers->status);
    const bool keep = wants_keep_alive(client, x);

    http::byte_buffer& body = x.body_text;
    body.clear();
    body.append(
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Request quota "
        "exceeded\",\"status\":");
    body.append_number(status);
    body.append(",\"violated-policies\":");
    append_violated(body, x.limit);
    body.append("}\n");

    auto& out = x.out;
    out.clear();
    out.append("HTTP/1.1 ");
    out.append_number(status);
    out.append(" ", http::reason_phrase(status), "\r\nDate: ", owner.http_date(),
               "\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\nContent-Length: ");
    out.append_number(body.size());
    if (x.limit.retry_after != limiter::never) {
        out.append("\r\nRetry-After: ");
        out.append_number(static_cast<std::uint64_t>(retry_after_seconds(x.limit.retry_after)));
    }
    out.append("\r\n", x.limit_fields.view());
    if (!keep)
        out.append("Connection: close\r\n");
    else if (x.head().minor_version == 0)
        out.append("Connection: keep-alive\r\n");
    out.append("\r\n");
    x.begin_answer(status, out.size());
    if (x.head().method_number != http::method_id::head)
        out.append(body.view());
    const bool again = co_await send_and_drop_body(client, x, keep);
    co_return again;
}

} // namespace headgate
