#include "gateway/request/relay.hpp"

#include "gateway/http/hop_headers.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <optional>

namespace headgate {

namespace {

using http::body_kind;
using http::http_error;

// What is left of a body for a pipe to be worth it: with 31 KiB it was dearer than copying, by a seventh.
constexpr std::uint64_t worth_a_pipe = 64 * 1024;
// Of one body, however fast both sides are, before others have their turn.
constexpr std::size_t most_at_once = 256 * 1024;

// By the kernel, or by a sandbox around us.
bool is_unsupported(const error_code& error)
{
    using namespace boost::system::errc;
    return error == invalid_argument || error == function_not_supported || error == operation_not_permitted ||
           error == permission_denied;
}

// How the answer's body is framed for this client.
http::body_framing client_framing(const exchange& x)
{
    const auto& from = x.answer_framing.body;
    if (from.kind == body_kind::none || from.kind == body_kind::length)
        return from;
    return {x.head().minor_version == 1 ? body_kind::chunked : body_kind::until_close};
}

// Which fields about quotas go to the client; `ours` also holds an explanation that was asked for.
struct told_limits
{
    std::string_view ours;
    bool replace = false; // the upstream's are dropped
};

told_limits choose_limits(const exchange& x)
{
    const auto ours = x.limit_fields.view();
    if (x.quota_bytes == 0)
        return {ours};
    switch (x.route->answers->config->upstream_headers) {
    case config::upstream_fields::keep:
        return {http::tells_limits(x.answer().fields) ? ours.substr(x.quota_bytes) : ours};
    case config::upstream_fields::merge:
        return {ours};
    case config::upstream_fields::replace:
        break;
    }
    return {ours, true};
}

// The part of the answer's body between `from` and the end of answer_in, framed for the client. Appends to x.out what
// must be framed anew; a body that passes as it is comes back in `plain`.
bool take_ready_answer(exchange& x, std::size_t from, body_kind to, std::uint64_t& left, std::string_view& plain,
                       bool& done)
{
    auto ready = x.answer_in.view().substr(from);
    plain = {};
    switch (x.answer_framing.body.kind) {
    case body_kind::none:
        if (!ready.empty())
            x.answer_framing.reusable = false; // a body all the same, or its beginning (D4)
        done = true;
        return true;
    case body_kind::length:
        plain = ready.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left, ready.size())));
        left -= plain.size();
        done = left == 0;
        if (plain.size() < ready.size())
            x.answer_framing.reusable = false; // more than was announced: never somebody else's answer (D4)
        return true;
    case body_kind::until_close:
        if (to == body_kind::chunked)
            append_chunk(x.out, ready);
        else
            plain = ready;
        return true;
    case body_kind::chunked:
        break;
    }
    while (!done) {
        const auto step = x.answer_chunks.next(ready);
        ready.remove_prefix(step.consumed);
        if (step.kind == http::chunk_step::what::failed)
            return false;
        if (to == body_kind::chunked)
            append_chunk(x.out, step.data);
        else
            x.out.append(step.data);
        done = step.kind == http::chunk_step::what::done;
        if (step.kind == http::chunk_step::what::need_more)
            break;
    }
    if (done && !ready.empty())
        x.answer_framing.reusable = false;
    return true;
}

} // namespace

relaying::relaying(session& client, exchange& x, upstream_connection& link, uploading& upload)
    : client_(client), x_(x), link_(link), upload_(upload), framing_(client_framing(x)),
      keep_(x.framing.keep_alive && !client.owner().is_draining() && framing_.kind != body_kind::until_close),
      left_(x.answer_framing.body.length)
{
    build_head();
    take_ready(x_.answer_parser.consumed());
    finish_piece();
}

void relaying::build_head()
{
    const auto limits = choose_limits(x_);
    x_.out.clear();
    http::build_client_head(x_.out, x_.answer(),
                            {
                                .body = framing_,
                                .declared_length = x_.answer_framing.declared_length,
                                .connection = &x_.answer_framing.connection,
                                .date = client_.owner().http_date(),
                                .via = x_.setup->via,
                                .request_id_header = x_.setup->request_id_header,
                                .request_id = x_.request_id_view(),
                                .edits = &x_.route->response_edits,
                                .extra_fields = limits.ours,
                                .replaces_rate_limits = limits.replace,
                                .keep_alive = keep_,
                                .client_http_1_0 = x_.head().minor_version == 0,
                            });
    x_.begin_answer(x_.answer().status, x_.out.size());
    x_.answer_chunks.reset();
}

void relaying::take_ready(std::size_t from)
{
    sound_ = take_ready_answer(x_, from, framing_.kind, left_, plain_, done_);
}

// What x.out holds, and the plain part of the body behind it.
void relaying::finish_piece()
{
    if (done_ && framing_.kind == body_kind::chunked)
        x_.out.append(http::last_chunk);
    http::join_small(x_.out, plain_);
    piece_ = {&client_, x_.out.view(), plain_, done_ && sound_ && !keep_};
}

std::optional<bool> relaying::now()
{
    sent_ = piece_.now();
    if (!sent_ || !*sent_ || !sound_ || !done_ || upload_.is_running()) {
        x_.outcome.answered = std::chrono::steady_clock::now();
        return std::nullopt;
    }
    x_.outcome.came_whole = true;
    return finish(end::complete, upload_.client_error());
}

// Whether what is left of the body goes to the client as it comes, and is long enough.
bool relaying::is_worth_a_pipe() const
{
    return x_.answer_framing.body.kind == body_kind::length && left_ >= worth_a_pipe && !copies_;
}

// The rest of the body, unseen. Nothing when the kernel will not: `left_` is still to come then.
task<std::optional<relaying::end>> relaying::pass_rest(kernel_pipe& through, const client_watch& watch)
{
    client_.owner().buffers().give_back(x_.answer_in);
    while (left_ > 0) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left_, most_at_once));
        const auto error = co_await link_.read(through, most, x_.via->idle_timeout());
        if (is_unsupported(error))
            co_return std::nullopt;
        if (error)
            co_return watch.client_is_gone() ? end::client_gone : end::cut;
        left_ -= through.held();
        at_once_ += through.held();
        const bool sent = co_await client_.send(through);
        if (!sent)
            co_return end::client_gone;
        if (at_once_ >= most_at_once && left_ > 0)
            co_await others_first();
    }
    co_return end::complete;
}

// The rest of the body through a pipe, if there is one. Nothing when it must be copied after all.
task<std::optional<relaying::end>> relaying::try_pipe(const client_watch& watch)
{
    auto& pipes = client_.owner().pipes();
    auto pipe = pipes.take();
    if (!pipe)
        co_return std::nullopt;
    const auto passed = co_await pass_rest(pipe, watch);
    pipes.give_back(std::move(pipe));
    if (!passed) {
        static std::atomic_flag told;
        pipes.give_up();
        if (!told.test_and_set())
            spdlog::warn("splice is not allowed here: long answers are copied, which takes more CPU");
    }
    co_return passed;
}

task<bool> relaying::later()
{
    auto how = end::complete;
    std::optional<client_watch> watch;
    for (;;) {
        bool sent = sent_.value_or(false);
        if (!sent_)
            sent = co_await piece_.later();
        if (!sent || !sound_) {
            how = sent ? end::cut : end::client_gone;
            break;
        }
        if (done_)
            break;
        x_.out.clear();
        x_.answer_in.clear();
        if (!watch)
            watch.emplace(client_, link_);
        if (at_once_ >= most_at_once)
            co_await others_first();
        if (is_worth_a_pipe()) {
            const auto passed = co_await try_pipe(*watch);
            if (passed) {
                how = *passed;
                break;
            }
            copies_ = true;
        }
        const auto error = co_await link_.read(x_.answer_in, client_.owner().buffers(), x_.via->idle_timeout());
        if (!error) {
            take_ready(0);
        } else if (!watch->client_is_gone() && error == asio::error::eof &&
                   x_.answer_framing.body.kind == body_kind::until_close) {
            done_ = true;
            plain_ = {};
        } else {
            how = watch->client_is_gone() ? end::client_gone : end::cut;
            break;
        }
        at_once_ += x_.answer_in.size();
        finish_piece();
        sent_ = piece_.now();
    }
    watch.reset();
    // An answer that is complete before the request is: nothing more of the request is wanted.
    const auto from_client = co_await upload_.end(client_, link_);
    x_.outcome.ended = std::chrono::steady_clock::now();
    co_return finish(how, from_client);
}

bool relaying::finish(end how, http_error from_client)
{
    const bool whole = x_.body_done && !upload_.failed() && from_client == http_error::none;
    const bool stalled = link_.read_timed_out();
    if (how == end::complete && x_.answer_framing.reusable && whole)
        x_.via->give_back(link_);
    else
        x_.via->discard(link_);
    if (how == end::client_gone)
        x_.outcome.error = http_error::client_gone;
    if (how == end::cut) {
        x_.outcome.error = stalled ? http_error::upstream_idle_timeout : http_error::upstream_truncated;
        client_.owner().metrics().of_upstream(x_.via->name()).failures.add();
        client_.close_with_reset();
    }
    return keep_ && how == end::complete && x_.body_done;
}

} // namespace headgate
