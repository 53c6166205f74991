#include "gateway/request/forward.hpp"

#include "gateway/http/hop_headers.hpp"
#include "gateway/http/upgrade.hpp"
#include "gateway/request/echo.hpp"
#include "gateway/request/limit.hpp"
#include "gateway/request/relay.hpp"
#include "gateway/request/respond.hpp"
#include "gateway/request/session.hpp"
#include "gateway/request/tunnel.hpp"
#include "gateway/request/upload.hpp"
#include "gateway/request/watch_client.hpp"
#include "gateway/upstream/upstream.hpp"

namespace headgate {

namespace {

using http::http_error;

constexpr unsigned most_interim = 10; // 1xx heads before the answer

// The path as the upstream is to see it. A prefix is stripped from the plain form that was routed; what is left still
// begins with a slash.
std::string_view forwarded_path(exchange& x)
{
    const auto& route = *x.route->config;
    const auto path = route.path == config::forward_path::as_received ? x.target.path : x.path;
    const auto& strip = route.rewrite.strip_prefix;
    if (strip.empty() && route.rewrite.replace_prefix.empty())
        return path;
    if (!path.starts_with(strip))
        return path;
    x.path_out.clear();
    x.path_out.append(route.rewrite.replace_prefix);
    const auto rest = path.substr(strip.size());
    const bool slash_before = x.path_out.view().ends_with('/');
    if (!rest.starts_with('/') && !slash_before)
        x.path_out.append('/');
    x.path_out.append(rest.starts_with('/') && slash_before ? rest.substr(1) : rest);
    return x.path_out.view();
}

http::forwarded_for forwarded_for(config::x_forwarded mode)
{
    switch (mode) {
    case config::x_forwarded::replace:
        return http::forwarded_for::replace;
    case config::x_forwarded::off:
        return http::forwarded_for::off;
    case config::x_forwarded::append:
        break;
    }
    return http::forwarded_for::append;
}

std::string_view upstream_host(const exchange& x, const upstream_connection& link)
{
    const auto& choice = x.via->config().host;
    if (choice == "keep")
        return x.host;
    return choice == "rewrite" ? x.via->server_name(link.server()) : std::string_view(choice);
}

void build_head(session& client, exchange& x, const upstream_connection& link, bool websocket)
{
    const auto& rules = x.setup->config.forwarding;
    const bool writes_forwarded = rules.x_forwarded_headers != config::x_forwarded::off;
    x.out.clear();
    http::build_upstream_head(x.out, x.head(),
                              {
                                  .path = forwarded_path(x),
                                  .query = x.target.query,
                                  .host = upstream_host(x, link),
                                  .body = x.framing.body,
                                  .connection = &x.framing.connection,
                                  .peer = client.owner().address_texts().of(client.peer()),
                                  .scheme = "http",
                                  .original_host = x.host,
                                  .peer_trusted = x.client.peer_trusted,
                                  .x_forwarded_for = forwarded_for(rules.x_forwarded_headers),
                                  .x_forwarded_proto = writes_forwarded,
                                  .x_forwarded_host = writes_forwarded,
                                  .forwarded = rules.forwarded,
                                  .via = x.setup->via,
                                  .request_id_header = x.setup->request_id_header,
                                  .request_id = x.request_id_view(),
                                  .edits = &x.route->request_edits,
                                  .max_forwards = x.framing.max_forwards,
                                  .accepts_trailers = false, // trailers are dropped, so none are promised (A12)
                                  .websocket = websocket,
                                  .keep_underscore_names = rules.underscores == config::underscore_headers::keep,
                              });
}

// What keeps a request from being forwarded at all.
http_error check_forward(exchange& x, http::upgrade_kind& upgrade)
{
    if (http::passed_through(x.head().fields, x.setup->via))
        return http_error::loop_detected;
    return http::read_upgrade(x.head(), x.framing, upgrade);
}

// What a failed read of the answer's head means.
http_error read_failed(const upstream_connection& link, const error_code& error)
{
    if (link.read_timed_out())
        return http_error::upstream_timeout;
    return error == asio::error::eof ? http_error::upstream_closed : http_error::upstream_reset;
}

// Bytes become a head, interim or final, if they are enough for one.
std::optional<http_error> parse_answer_head(exchange& x)
{
    if (x.answer_in.empty())
        return std::nullopt;
    switch (x.answer_parser.feed(x.answer_in.view())) {
    case http::parse_state::need_more:
        return std::nullopt;
    case http::parse_state::failed:
        return x.answer_parser.error();
    case http::parse_state::done:
        break;
    }
    return http::frame_response(x.head().method_number, x.answer(), x.answer_framing);
}

void drop_answer_head(exchange& x)
{
    const auto used = x.answer_parser.consumed();
    std::memmove(x.answer_in.data(), x.answer_in.data() + used, x.answer_in.size() - used);
    x.answer_in.truncate(x.answer_in.size() - used);
    x.answer_parser.reset();
}

// The upstream's 101 answers this client's handshake and no other: all that follows passes unseen (C7).
bool accepts(const exchange& x)
{
    const auto* key = x.head().fields.find(http::field_id::sec_websocket_key);
    return key && http::accepts_websocket(x.answer(), x.answer_framing.connection, key->value);
}

// The final head, once the first bytes of the answer have been waited for: nearly always all of it has come with them.
struct reading_answer
{
    session& client;
    exchange& x;
    upstream_connection& link;
    bool websocket;
    std::optional<http_error> head; // what is known of the head being read

    std::optional<http_error> now()
    {
        head = parse_answer_head(x);
        return head && (*head != http_error::none || !x.answer_framing.interim) ? head : std::nullopt;
    }
    task<http_error> later() { return read_on(client, x, link, websocket, head); }

    // 1xx before the final head go to a client that understands them (C5).
    static task<http_error> read_on(session& client, exchange& x, upstream_connection& link, bool websocket,
                                    std::optional<http_error> head)
    {
        for (;;) {
            while (!head) {
                const auto error =
                    co_await link.read(x.answer_in, client.owner().buffers(), x.via->first_byte_timeout());
                if (error)
                    co_return read_failed(link, error);
                head = parse_answer_head(x);
            }
            if (*head != http_error::none || !x.answer_framing.interim)
                co_return *head;
            if (x.answer().status == 101)
                co_return websocket&& accepts(x) ? http_error::none : http_error::upstream_unasked_upgrade;
            if (x.head().minor_version == 1) {
                x.interim_out.clear();
                http::build_client_head(x.interim_out, x.answer(), {.connection = &x.answer_framing.connection});
                const bool sent = co_await client.send(x.interim_out.view());
                if (!sent)
                    co_return http_error::client_gone;
            }
            drop_answer_head(x);
            if (++x.interim_heads > most_interim)
                co_return http_error::upstream_too_many_interim;
            head = parse_answer_head(x);
        }
    }
};

// The part of the body that came with the head, framed for the upstream; what is left is streamed later.
http_error take_first_body(session& client, exchange& x, std::string_view& out)
{
    out = {};
    x.body_out.clear();
    if (x.framing.body.kind == http::body_kind::length) {
        const auto piece = take_ready_body(x, client.limits().limits.body.bytes);
        out = piece.data; // straight from where it was read to
        return piece.error;
    }
    const auto error = append_ready_chunks(client, x, x.body_out);
    out = x.body_out.view();
    return error;
}

// Whether the upstream failed in a way that the request can be sent again without doing anything twice (C10).
bool may_try_again(session& client, const exchange& x, http_error error, const http::failed_attempt& failure)
{
    if (http::describe(error).to_blame != http::culprit::upstream)
        return false;
    client.owner().metrics().of_upstream(x.via->name()).failures.add();
    return error != http_error::upstream_timeout && error != http_error::upstream_busy && http::may_retry(failure);
}

// Sends the request, reads the answer's head, on a second connection when the first one failed harmlessly, and relays
// the answer.
task<bool> ask_upstream(session& client, exchange& x, bool websocket)
{
    bool told = true;
    if (awaits_continue(x))
        told = co_await tell_to_continue(client, x);
    if (!told)
        co_return false;
    std::string_view first_body;
    auto error = take_first_body(client, x, first_body);
    const bool all_in_hand = x.body_done;
    std::uint32_t avoid = http::upstream_pool::nothing;
    uploading upload;
    for (unsigned attempt = 0; error == http_error::none; ++attempt) {
        const auto got = co_await x.via->checkout(client, avoid);
        // Where nothing was sent, all of the body is still in hand or on its way.
        http::failed_attempt failure{.method = x.head().method_number,
                                     .connected = got.connection != nullptr,
                                     .reused_connection = got.reused,
                                     .body_replayable = all_in_hand || !got.connection,
                                     .retries = attempt};
        error = got.error;
        x.answer_in.clear();
        x.interim_heads = 0;
        if (got.connection) {
            auto& link = *got.connection;
            avoid = link.server();
            x.outcome.server = x.via->server_name(avoid);
            build_head(client, x, link, websocket);
            auto body = first_body;
            http::join_small(x.out, body);
            co_await client.in_step();
            const bool sent = co_await link.send(x.out.view(), body, x.via->idle_timeout());
            failure.request_bytes_sent = x.out.size() + body.size();
            error = sent ? http_error::none : http_error::upstream_reset;
            if (sent) {
                x.outcome.asked = got.at_once ? x.began : std::chrono::steady_clock::now();
                if (!x.body_done)
                    upload.begin(client, x, link);
                x.answer_parser.reset();
                watch_client watch(client, link);
                const auto failed =
                    co_await link.read(x.answer_in, client.owner().buffers(), x.via->first_byte_timeout());
                if (failed)
                    error = read_failed(link, failed);
                else
                    error = co_await at_once_or_later(reading_answer{client, x, link, websocket, {}});
                if (watch.client_is_gone())
                    error = http_error::client_gone;
            }
            if (error == http_error::none) {
                note_answer(x);
                if (websocket && x.answer().status == 101) {
                    co_await relay_tunnel(client, x, link);
                    co_return false;
                }
                auto relay = relay_answer(client, x, link, upload);
                co_await client.in_step();
                const bool again = co_await relay;
                co_return again;
            }
            failure.response_bytes_received = x.interim_heads + x.answer_in.size(); // an interim answer is one too
            const auto from_client = co_await upload.end(client, link);
            if (from_client != http_error::none)
                error = from_client;
            x.via->discard(link);
        }
        if (may_try_again(client, x, error, failure))
            error = http_error::none;
    }
    if (error == http_error::client_gone)
        co_return false;
    const bool again = co_await answer_error(client, x, error);
    co_return again;
}

task<bool> forward_to_echo(session& client, exchange& x)
{
    bool told = true;
    if (awaits_continue(x))
        told = co_await tell_to_continue(client, x);
    if (!told)
        co_return false;
    const bool again = co_await answer_with_echo(client, x);
    co_return again;
}

task<bool> answer_with(own_answer answer)
{
    const bool again = co_await answer;
    co_return again;
}

} // namespace

task<bool> forward(session& client, exchange& x)
{
    if (x.route->upstream->echo)
        return forward_to_echo(client, x);
    http::upgrade_kind upgrade = http::upgrade_kind::none;
    if (const auto error = check_forward(x, upgrade); error != http_error::none)
        return answer_with(answer_error(client, x, error));
    if (x.framing.max_forwards == std::uint64_t{0})
        return answer_with(answer_empty(client, x));
    x.via = client.owner().upstream_of(x);
    return ask_upstream(client, x, upgrade == http::upgrade_kind::websocket);
}

} // namespace headgate
