#include "gateway/request/tunnel.hpp"

#include "gateway/http/hop_headers.hpp"
#include "gateway/request/request.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"
#include "limiter/io/event.hpp"

namespace headgate {

namespace {

// From the client to the upstream, in the background.
class upward
{
public:
    upward(request& r, upstream_connection& to) : r_(r), link_(to) {}
    void begin()
    {
        is_running_ = true;
        spawn(r_.worker.loop().get_executor(), run());
    }
    bool is_running() const { return is_running_; }
    task<> end()
    {
        if (is_running_)
            r_.client.stop_reading();
        link_.cancel();
        while (is_running_)
            co_await ended_.wait();
    }

private:
    task<> run()
    {
        for (bool is_open = true; is_open;) {
            const auto piece = co_await r_.client.read_raw();
            is_open = piece.error == http::http_error::none;
            if (!is_open)
                break;
            const io_result sent = co_await link_.send(piece.data, {}, r_.upstream.pool->idle_timeout());
            is_open = !sent.error;
            link_.restart_read_deadline(); // the upstream may be silent for as long as the client is not
        }
        link_.cancel();
        is_running_ = false;
        ended_.notify();
    }

    request& r_;
    upstream_connection& link_;
    bool is_running_ = false;
    event ended_;
};

task<bool> send_handshake(request& r)
{
    auto& fields = r.memory->answer_fields;
    fields.clear();
    http::append_interim_fields(fields, r.answer(), r.memory->answer_framing.connection);
    fields.place_framing();
    fields.place_connection();
    if (!r.answer().fields.has(http::field_id::date))
        fields.text().append("Date: ", r.worker.http_date(), "\r\n");
    if (const auto& id = r.config().request_id_header; !id.empty())
        fields.text().append(id.text, ": ", r.received.id, "\r\n");
    const http::answer_head head{.status = 101, .fields = &fields, .reason = r.answer().reason, .has_body = false};
    const std::string_view early = r.upstream.answer.bytes().view().substr(r.memory->answer_parser.consumed());
    r.record.status = 101;
    r.record.answered = std::chrono::steady_clock::now();
    const bool is_sent = co_await r.client.send_head(head, {&early, 1}, false);
    co_return is_sent;
}

} // namespace

task<> relay_tunnel(request& r, upstream_connection& link)
{
    bool is_open = co_await send_handshake(r);
    upward up(r, link);
    if (is_open)
        up.begin();
    auto& window = r.upstream.answer;
    while (is_open && up.is_running()) {
        window.start();
        const io_result got = co_await link.read(window.bytes(), r.upstream.pool->tunnel_timeout());
        if (got.error && link.read_timed_out())
            r.record.error = http::http_error::tunnel_idle;
        if (got.error)
            break;
        const auto bytes = window.bytes().view();
        is_open = co_await r.client.send_body({&bytes, 1}, false);
        co_await r.worker.loop().let_clients_go_first(); // both sides may be as fast as this worker
    }
    co_await up.end();
    r.upstream.pool->discard(link);
}

} // namespace headgate
