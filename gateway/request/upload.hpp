// The request's body on its way to the upstream: what came with the head, and the rest while the answer is awaited,
// with one window of memory and as fast as the slower side takes it.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/request/exchange.hpp"
#include "gateway/request/session.hpp"
#include "gateway/upstream/upstream.hpp"
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

} // namespace headgate
