#include "gateway/request/upload.hpp"

#include "gateway/http/chunk_writer.hpp"
#include "gateway/request/request.hpp"
#include "gateway/upstream/upstream.hpp"
#include "gateway/worker.hpp"

namespace headgate {

namespace {

using http::body_kind;
using http::http_error;

} // namespace

// Appends all that is left of the window, so that many tiny chunks leave in one send; with the last chunk when the body
// ends there.
http_error body_upload::append_ready_chunks(http::byte_buffer& out)
{
    while (!r_.client.has_read_body()) {
        const auto piece = r_.client.take_body();
        if (piece.error != http_error::none)
            return piece.error;
        if (piece.data.empty() && !piece.done)
            break;
        http::append_chunk(out, piece.data);
        if (piece.done)
            out.append(http::last_chunk);
    }
    return http_error::none;
}

http_error body_upload::take_first(std::string_view& out)
{
    out = {};
    if (r_.client.framing().body.kind == body_kind::chunked) {
        auto& framed = r_.memory->first_body;
        framed.clear();
        const auto error = append_ready_chunks(framed);
        out = framed.view();
        return error;
    }
    const auto piece = r_.client.take_body();
    out = piece.data; // straight from where it was read to
    return piece.error;
}

void body_upload::begin(upstream_connection& to)
{
    is_running_ = true;
    to.begin_upload();
    spawn(r_.worker.loop().get_executor(), run(to));
}

task<> body_upload::run(upstream_connection& to)
{
    auto& framed = r_.memory->upload;
    const bool is_chunked = r_.client.framing().body.kind == body_kind::chunked;
    while (!r_.client.has_read_body() && !is_stopping_) {
        const auto piece = co_await r_.client.read_body();
        auto bytes = piece.data;
        auto error = piece.error;
        if (error == http_error::none && is_chunked) {
            framed.clear();
            http::append_chunk(framed, piece.data);
            if (piece.done)
                framed.append(http::last_chunk);
            error = append_ready_chunks(framed);
            bytes = framed.view();
        }
        if (error != http_error::none) {
            client_error_ = is_stopping_ ? http_error::none : error;
            has_failed_ = true;
            to.cancel(); // a request that will never be whole needs no answer (A8, A13)
            break;
        }
        if (is_stopping_)
            break;
        const io_result sent = co_await to.send(bytes, {}, r_.upstream.pool->idle_timeout());
        if (sent.error) { // it may have answered already and stopped listening: the answer decides
            has_failed_ = true;
            break;
        }
    }
    has_failed_ = has_failed_ || !r_.client.has_read_body();
    is_running_ = false;
    to.end_upload();
    ended_.notify();
}

task<http_error> body_upload::end(upstream_connection& to)
{
    if (is_running_) {
        is_stopping_ = true;
        r_.client.stop_reading();
        to.cancel();
    }
    while (is_running_)
        co_await ended_.wait();
    r_.client.resume_reading(); // what is left of the body may still be dropped
    co_return client_error_;
}

} // namespace headgate
