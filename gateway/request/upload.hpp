// The request's body on its way to the upstream: what came with the head, and the rest while the answer is awaited,
// with one window of memory and as fast as the slower side takes it.
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/event.hpp"

#include <string_view>

namespace headgate {

class request;
class upstream_connection;

class body_upload
{
public:
    explicit body_upload(request& r) : r_(r) {}

    // Takes the part of the body that came with the head, framed for the upstream.
    http::http_error take_first(std::string_view& out);

    // Sends the rest of it in the background.
    void begin(upstream_connection& to);
    bool is_running() const { return is_running_; }
    // The upstream did not get all of it.
    bool has_failed() const { return has_failed_; }
    // What the client did wrong, if anything.
    http::http_error client_error() const { return client_error_; }
    // Stops it if it still runs. Must be awaited before the request ends. Returns what the client did wrong, if
    // anything.
    task<http::http_error> end(upstream_connection& to);

private:
    task<> run(upstream_connection& to);
    http::http_error append_ready_chunks(http::byte_buffer& out);

    request& r_;
    bool is_running_ = false;
    bool is_stopping_ = false;
    bool has_failed_ = false;
    http::http_error client_error_ = http::http_error::none;
    event ended_;
};

} // namespace headgate
