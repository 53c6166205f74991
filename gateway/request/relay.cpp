#include "gateway/request/relay.hpp"

#include "gateway/client/client_watch.hpp"
#include "gateway/http/hop_headers.hpp"
#include "gateway/request/request.hpp"
#include "gateway/request/splice.hpp"
#include "gateway/request/upload.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

using http::http_error;

// Of one body, however fast both sides are, before clients that wait have their turn.
constexpr std::size_t most_in_a_row = 256 * 1024;

// Which fields about quotas go to the client; `own` also holds an explanation that was asked for.
struct quota_fields
{
    std::string_view own;
    bool replaces_upstream = false; // the upstream's are dropped
};

quota_fields choose_quota_fields(const request& r)
{
    const auto own = r.memory->limit_fields.view();
    if (r.limits.quota_bytes == 0)
        return {own};
    switch (r.received.route->answers->config->upstream_headers) {
    case config::upstream_fields::keep:
        return {http::tells_limits(r.answer().fields) ? own.substr(r.limits.quota_bytes) : own};
    case config::upstream_fields::merge:
        return {own};
    case config::upstream_fields::replace:
        break;
    }
    return {own, true};
}

} // namespace

task<> answer_relay::run()
{
    const auto& body = r_.memory->answer_body;
    const auto head = make_head();
    take_body(r_.memory->answer_parser.consumed());
    const bool is_sent = co_await r_.client.send_head(head, body.pieces(), body.is_done());
    r_.record.answered = std::chrono::steady_clock::now();
    auto how = is_sent ? relay_end::complete : relay_end::client_gone;
    if (is_sent && !body.is_sound())
        how = relay_end::cut;
    else if (is_sent && !body.is_done())
        how = co_await relay_rest();
    // An answer that is complete before the request is: nothing more of the request is wanted.
    if (upload_.is_running())
        co_await upload_.end(link_);
    finish(how);
}

http::answer_head answer_relay::make_head()
{
    auto& fields = r_.memory->answer_fields;
    const auto& framing = r_.memory->answer_framing;
    const auto quotas = choose_quota_fields(r_);
    fields.clear();
    http::append_client_fields(fields, r_.answer(),
                               {
                                   .connection = &framing.connection,
                                   .date = r_.worker.http_date(),
                                   .via = r_.config().via,
                                   .request_id_header = r_.config().request_id_header,
                                   .request_id = r_.received.id,
                                   .edits = &r_.received.route->response_edits,
                                   .extra_fields = quotas.own,
                                   .replaces_rate_limits = quotas.replaces_upstream,
                               });
    r_.memory->answer_body.start(framing.body);
    r_.record.status = r_.answer().status;
    return http::relay_head(r_.answer(), framing, fields);
}

// Takes the part of the body between `from` and the end of what has been read.
void answer_relay::take_body(std::size_t from)
{
    auto& body = r_.memory->answer_body;
    body.take(r_.upstream.answer.bytes().view().substr(from));
    if (body.has_excess())
        r_.memory->answer_framing.reusable = false;
}

// The rest of an answer that has not come whole.
task<relay_end> answer_relay::relay_rest()
{
    const client_watch watch(r_.client, link_);
    if (may_splice(r_)) {
        const auto spliced = co_await splice_answer(r_, link_, watch);
        if (spliced)
            co_return *spliced;
    }
    const auto copied = co_await copy_rest(watch);
    co_return copied;
}

task<relay_end> answer_relay::copy_rest(const client_watch& watch)
{
    auto& window = r_.upstream.answer;
    auto& body = r_.memory->answer_body;
    std::size_t in_a_row = 0;
    while (!body.is_done()) {
        window.start();
        const io_result got = co_await link_.read(window.bytes(), r_.upstream.pool->idle_timeout());
        if (watch.client_is_gone())
            co_return relay_end::client_gone;
        if (!got.error)
            take_body(0);
        else if (got.error != asio::error::eof || !body.end())
            co_return relay_end::cut;
        const bool is_sent = co_await r_.client.send_body(body.pieces(), body.is_done());
        if (!is_sent)
            co_return relay_end::client_gone;
        if (!body.is_sound())
            co_return relay_end::cut;
        in_a_row += window.bytes().size();
        if (in_a_row >= most_in_a_row && !body.is_done()) {
            in_a_row = 0;
            co_await r_.worker.loop().let_clients_go_first();
        }
    }
    co_return relay_end::complete;
}

void answer_relay::finish(relay_end how)
{
    const bool is_request_whole =
        r_.client.has_read_body() && !upload_.has_failed() && upload_.client_error() == http_error::none;
    const bool has_stalled = link_.read_timed_out();
    if (how == relay_end::complete && r_.memory->answer_framing.reusable && is_request_whole)
        r_.upstream.pool->give_back(link_);
    else
        r_.upstream.pool->discard(link_);
    if (how == relay_end::client_gone)
        r_.record.error = http_error::client_gone;
    if (how == relay_end::cut) {
        r_.record.error = has_stalled ? http_error::upstream_idle_timeout : http_error::upstream_truncated;
        if (upload_.client_error() != http_error::none) // it cut the request, and so its own answer
            r_.record.error = upload_.client_error();
        else
            r_.worker.metrics().of_upstream(r_.upstream.pool->name()).failures.add();
        r_.client.abort();
    }
}

} // namespace headgate
