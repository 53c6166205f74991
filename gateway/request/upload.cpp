#include "gateway/request/upload.hpp"

namespace headgate {

namespace {

using http::body_kind;
using http::http_error;

// What framing a window of chunks anew can add: a line and an end for a chunk that began before the window, an end for
// one that goes on after it, the last chunk. Every other chunk came with at least the framing it leaves with.
constexpr std::size_t most_framing = 64;

} // namespace

void append_chunk(http::byte_buffer& out, std::string_view data)
{
    if (data.empty())
        return;
    http::chunk_line line;
    out.append(http::format_chunk_line(data.size(), line), data, http::chunk_data_end);
}

http_error append_ready_chunks(session& client, exchange& x, http::byte_buffer& out)
{
    while (!x.body_done) {
        const auto piece = take_ready_body(x, client.limits().limits.body.bytes);
        if (piece.error != http_error::none)
            return piece.error;
        if (piece.data.empty() && !piece.done)
            break;
        append_chunk(out, piece.data);
        if (piece.done)
            out.append(http::last_chunk);
    }
    return http_error::none;
}

bool awaits_continue(const exchange& x)
{
    return x.framing.expects_continue && !x.body_done && x.in.size() <= x.body_at;
}

task<bool> tell_to_continue(session& client, exchange& x)
{
    x.continue_sent = true;
    const bool sent = co_await client.send("HTTP/1.1 100 Continue\r\n\r\n");
    co_return sent;
}

struct uploading::until_done
{
    uploading& upload;
    bool await_ready() const noexcept { return !upload.running_; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { upload.waiting_ = waiting; }
    void await_resume() const noexcept {}
};

void uploading::begin(session& client, exchange& x, upstream_connection& to)
{
    running_ = true;
    start(run(client, x, to));
}

task<void> uploading::run(session& client, exchange& x, upstream_connection& to)
{
    auto& framed = x.upload_out;
    if (x.framing.body.kind == body_kind::chunked)
        framed.reserve(read_size + most_framing); // once, whatever pieces the body comes in
    while (!x.body_done && !stopping_) {
        const auto piece = co_await client.read_body(x);
        auto bytes = piece.data;
        auto error = piece.error;
        if (error == http_error::none && x.framing.body.kind == body_kind::chunked) {
            framed.clear();
            append_chunk(framed, piece.data);
            if (piece.done)
                framed.append(http::last_chunk);
            error = append_ready_chunks(client, x, framed);
            bytes = framed.view();
        }
        if (error != http_error::none) {
            client_error_ = stopping_ ? http_error::none : error;
            failed_ = true;
            to.cancel(); // a request that will never be whole needs no answer (A8, A13)
            break;
        }
        if (stopping_)
            break;
        const bool sent = co_await to.send(bytes, {}, x.via->idle_timeout());
        if (!sent) { // it may have answered already and stopped listening: the answer decides
            failed_ = true;
            break;
        }
    }
    failed_ = failed_ || !x.body_done;
    running_ = false;
    if (waiting_)
        waiting_.resume();
}

task<http_error> uploading::interrupt(session& client, upstream_connection& to)
{
    stopping_ = true;
    client.interrupt();
    to.cancel();
    co_await until_done{*this};
    co_return client_error_;
}

} // namespace headgate
