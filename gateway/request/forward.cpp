#include "gateway/request/forward.hpp"

#include "gateway/client/client_watch.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/http/upgrade.hpp"
#include "gateway/request/echo.hpp"
#include "gateway/request/relay.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/settle.hpp"
#include "gateway/request/tunnel.hpp"
#include "gateway/request/upload.hpp"
#include "gateway/request/upstream_answer.hpp"
#include "gateway/request/upstream_head.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

using http::http_error;

constexpr unsigned most_interim = 10; // 1xx heads before the answer

// What is sent to the upstream, and whether it can be sent again.
struct outgoing
{
    bool is_websocket = false;
    std::string_view first_body;                        // what came of the body with the head, framed for the upstream
    bool is_all_in_hand = false;                        // there is no more of it
    std::uint32_t avoid = http::upstream_pool::nothing; // the server that has just failed
    unsigned attempts = 0;
};

// ---- the answer's head

http_error read_failed(const upstream_connection& link, const error_code& error)
{
    if (link.read_timed_out() || link.write_timed_out())
        return http_error::upstream_timeout;
    return error == asio::error::eof ? http_error::upstream_closed : http_error::upstream_reset;
}

// Passes a 1xx head on (C5); a 101 is the answer to a handshake, or wrong.
task<http_error> pass_interim_head(request& r)
{
    auto& fields = r.memory->answer_fields;
    fields.clear();
    http::append_interim_fields(fields, r.answer(), r.memory->answer_framing.connection);
    const http::answer_head head{
        .status = r.answer().status, .fields = &fields, .reason = r.answer().reason, .has_body = false};
    const bool is_sent = co_await r.client.send_interim(head);
    if (!is_sent)
        co_return http_error::client_gone;
    drop_interim_head(r);
    co_return r.upstream.interim_heads > most_interim ? http_error::upstream_too_many_interim : http_error::none;
}

// ---- one attempt

// Sends the request over the connection and reads the answer's final head: nearly always all of it comes in one read.
task<http_error> exchange_heads(request& r, upstream_connection& link, outgoing& what, body_upload& upload)
{
    auto& head = r.memory->upstream_head;
    auto body = what.first_body;
    http::join_small(head, body);
    const io_result sent = co_await link.send(head.view(), body, r.upstream.pool->idle_timeout());
    if (sent.error)
        co_return http_error::upstream_reset;
    r.record.sent = std::chrono::steady_clock::now();
    if (!what.is_all_in_hand)
        upload.begin(link);
    const client_watch watch(r.client, link);
    r.memory->answer_parser.reset();
    std::optional<http_error> found;
    while (!found) {
        const io_result got = co_await link.read(r.upstream.answer.bytes(), r.upstream.pool->first_byte_timeout());
        found = got.error ? read_failed(link, got.error) : parse_answer_head(r);
        while (found == http_error::none && r.memory->answer_framing.interim) {
            if (r.answer().status == 101) {
                const bool is_wanted = what.is_websocket && accepts_handshake(r);
                found = is_wanted ? http_error::none : http_error::upstream_unasked_upgrade;
                break;
            }
            found = co_await pass_interim_head(r);
            if (found == http_error::none)
                found = parse_answer_head(r); // there may be another one behind it
        }
    }
    co_return watch.client_is_gone() ? http_error::client_gone : *found;
}

// Whether the upstream failed in a way that the request can be sent again without doing anything twice (C10).
bool may_try_again(request& r, http_error error, const http::failed_attempt& failure)
{
    if (http::describe(error).to_blame != http::culprit::upstream)
        return false;
    r.worker.metrics().of_upstream(r.upstream.pool->name()).failures.add();
    return error != http_error::upstream_timeout && error != http_error::upstream_busy && http::may_retry(failure);
}

// Makes one attempt. Returns the connection whose answer's head has been read, or why there is none and whether another
// attempt is worth it.
struct attempt_result
{
    upstream_connection* link = nullptr;
    http_error error = http_error::none;
    bool may_try_again = false;
};
task<attempt_result> attempt(request& r, outgoing& what, body_upload& upload)
{
    auto& pool = *r.upstream.pool;
    http::failed_attempt failure{.method = r.head().method_number, .retries = what.attempts++};
    auto got = pool.take_idle(what.avoid);
    if (got.waits)
        got = co_await pool.take(r.client, what.avoid, got.place);
    attempt_result result{.link = got.connection, .error = got.error};
    r.upstream.interim_heads = 0;
    r.upstream.answer.start();
    // Where nothing was sent, all of the body is still in hand or on its way.
    failure.body_replayable = what.is_all_in_hand || !result.link;
    failure.connected = result.link != nullptr;
    failure.reused_connection = got.is_reused;
    if (!got.server.empty())
        r.record.server = got.server;
    if (result.link) {
        what.avoid = result.link->server();
        build_upstream_head(r, what.avoid, what.is_websocket);
        failure.request_bytes_sent = r.memory->upstream_head.size() + what.first_body.size();
        result.error = co_await exchange_heads(r, *result.link, what, upload);
        if (result.error == http_error::none)
            co_return result;
        // An interim answer is one too.
        failure.response_bytes_received = r.upstream.interim_heads + r.upstream.answer.bytes().size();
        const auto client_error = co_await upload.end(*result.link);
        if (client_error != http_error::none)
            result.error = client_error;
        pool.discard(*result.link);
    }
    result.may_try_again = may_try_again(r, result.error, failure);
    co_return result;
}

// Sends the request, on a second connection when the first one failed harmlessly, and relays the answer.
task<> ask_upstream(request& r, bool is_websocket)
{
    bool is_here = true;
    if (r.client.awaits_continue())
        is_here = co_await r.client.send_continue();
    if (!is_here)
        co_return;
    outgoing what{.is_websocket = is_websocket};
    body_upload upload(r);
    attempt_result last;
    last.error = upload.take_first(what.first_body);
    what.is_all_in_hand = r.client.has_read_body();
    last.may_try_again = last.error == http_error::none;
    while (last.may_try_again)
        last = co_await attempt(r, what, upload);
    if (last.error == http_error::client_gone) {
        r.record.error = http_error::client_gone;
    } else if (last.error != http_error::none) {
        co_await respond_error(r, last.error);
    } else {
        note_answer(r);
        answer_relay relay(r, *last.link, upload);
        if (r.answer().status == 101)
            co_await relay_tunnel(r, *last.link);
        else
            co_await relay.run();
    }
}

} // namespace

task<> forward(request& r)
{
    if (r.received.route->upstream->echo)
        return respond_echo(r);
    auto upgrade = http::upgrade_kind::none;
    auto error = http_error::loop_detected;
    if (!http::passed_through(r.head().fields, r.config().via))
        error = http::read_upgrade(r.head(), r.client.framing(), upgrade);
    if (error != http_error::none)
        return respond_error(r, error);
    if (r.client.framing().max_forwards == std::uint64_t{0})
        return respond_empty(r);
    r.upstream.pool = r.worker.upstream_of(r);
    return ask_upstream(r, upgrade == http::upgrade_kind::websocket);
}

} // namespace headgate
