#include "gateway/request/tunnel.hpp"

#include "gateway/http/hop_headers.hpp"

#include <coroutine>

namespace headgate {

namespace {

task<void> pump_up(session& client, exchange& x, upstream_connection& link, bool& done,
                   std::coroutine_handle<>& waiting)
{
    // What the client sent right behind its handshake goes first.
    const auto early = x.in.view().substr(x.body_read);
    bool ok = co_await link.send(early, {}, x.via->idle_timeout());
    while (ok) {
        x.in.truncate(x.body_at);
        const auto got = co_await client.read_raw(x);
        if (got.error)
            break;
        ok = co_await link.send(x.in.view().substr(x.body_at), {}, x.via->idle_timeout());
    }
    link.cancel();
    done = true;
    if (waiting)
        waiting.resume();
}

struct until_pumped
{
    bool& done;
    std::coroutine_handle<>& waiting;
    bool await_ready() const noexcept { return done; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiting = h; }
    void await_resume() const noexcept {}
};

} // namespace

task<void> relay_tunnel(session& client, exchange& x, upstream_connection& link)
{
    x.out.clear();
    http::build_client_head(x.out, x.answer(), {.connection = &x.answer_framing.connection, .websocket = true});
    x.begin_answer(101, x.out.size());
    x.outcome.answered = std::chrono::steady_clock::now();
    x.in.reserve(x.body_at + read_size);
    bool done = false;
    std::coroutine_handle<> waiting;
    bool ok = co_await client.send(x.out.view(), x.answer_in.view().substr(x.answer_parser.consumed()));
    if (ok)
        start(pump_up(client, x, link, done, waiting));
    else
        done = true;
    while (ok && !done) {
        x.answer_in.clear();
        const auto error = co_await link.read(x.answer_in, client.owner().buffers(), x.via->tunnel_timeout());
        if (error)
            break;
        ok = co_await client.send(x.answer_in.view());
    }
    client.interrupt();
    link.cancel();
    co_await until_pumped{done, waiting};
    x.via->discard(link);
}

} // namespace headgate
