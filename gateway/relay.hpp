// Bodies on their way: the request's to the upstream, the answer's to the client, both at once when need be, each with
// one window of memory and as fast as the slower side takes it.
#pragma once

#include "gateway/exchange.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/session.hpp"
#include "gateway/upstream.hpp"
#include "limiter/io/task.hpp"

#include <coroutine>
#include <optional>

namespace headgate {

// The rest of a request's body, sent while the answer is awaited. Must have ended before the exchange does.
class uploading
{
public:
    void begin(session& client, exchange& x, upstream_connection& to);
    bool is_running() const { return running_; }
    bool failed() const { return failed_; }
    http::http_error client_error() const { return client_error_; } // what the client did wrong, if anything

    // Stops it if it still runs. What the client did wrong, if anything.
    auto end(session& client, upstream_connection& to) { return at_once_or_later(ending{*this, client, to}); }

private:
    struct ending
    {
        uploading& upload;
        session& client;
        upstream_connection& to;
        std::optional<http::http_error> now() const
        {
            return upload.running_ ? std::nullopt : std::optional(upload.client_error_);
        }
        task<http::http_error> later() const { return upload.interrupt(client, to); }
    };
    task<http::http_error> interrupt(session& client, upstream_connection& to);
    task<void> run(session& client, exchange& x, upstream_connection& to);
    struct until_done;

    bool running_ = false;
    bool stopping_ = false;
    bool failed_ = false; // the upstream did not get all of it
    http::http_error client_error_ = http::http_error::none;
    std::coroutine_handle<> waiting_;
};

// Appends one chunk of the chunked coding; nothing for no data.
void append_chunk(http::byte_buffer& out, std::string_view data);

// Appends all that is left of the window of a chunked request body, so that many tiny chunks leave in one send; with
// the last chunk when the body ends there.
http::http_error append_ready_chunks(session& client, exchange& x, http::byte_buffer& out);

// Whether the client waits for a 100 before it sends its body; and says it.
bool awaits_continue(const exchange& x);
task<bool> tell_to_continue(session& client, exchange& x);

// The answer whose head has been read: made ready, then sent. Gives the upstream's connection back or discards it.
// Whether the client's goes on.
class relaying
{
public:
    relaying(session& client, exchange& x, upstream_connection& link, uploading& upload);
    std::optional<bool> now(); // an answer that has all come, to a client that takes it
    task<bool> later();

private:
    enum class end
    {
        complete,
        client_gone,
        cut // the upstream ended too early or sent nonsense
    };

    void build_head();
    void take_ready(std::size_t from);
    void finish_piece();
    bool finish(end how, http::http_error from_client);

    session& client_;
    exchange& x_;
    upstream_connection& link_;
    uploading& upload_;
    http::body_framing framing_; // for this client
    bool keep_;
    std::uint64_t left_;     // of a body with a length
    std::string_view plain_; // of the body, as it is
    bool done_ = false;      // the body has all come
    bool sound_ = true;      // so far
    session::sending piece_{};
    std::optional<bool> sent_; // the piece: all of it, or not and the client is gone
};
inline auto relay_answer(session& client, exchange& x, upstream_connection& link, uploading& upload)
{
    return at_once_or_later(relaying(client, x, link, upload));
}

// Bytes both ways until either side ends, after a WebSocket handshake.
task<void> relay_tunnel(session& client, exchange& x, upstream_connection& link);

} // namespace headgate
