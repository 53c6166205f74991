// A real gateway on a free port, and raw clients and upstreams that send exactly the bytes of a test. No sleeps:
// everything waits for bytes, with a time limit that only a failure reaches.
#pragma once

#include "gateway/app.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace headgate::tests {

class file_descriptor
{
public:
    file_descriptor() = default;
    explicit file_descriptor(int fd) : fd_(fd) {}
    file_descriptor(file_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    file_descriptor& operator=(file_descriptor&& other) noexcept
    {
        close();
        fd_ = std::exchange(other.fd_, -1);
        return *this;
    }
    ~file_descriptor() { close(); }
    int get() const { return fd_; }
    void close();

private:
    int fd_ = -1;
};

// One TCP connection, blocking, with a time limit of 30 seconds on every read.
class raw_connection
{
public:
    raw_connection() = default;
    explicit raw_connection(file_descriptor fd);
    static raw_connection to(std::uint16_t port);

    void send(std::string_view bytes);
    void send_bytewise(std::string_view bytes); // every byte in a separate segment
    bool has_arrived() const;                   // whether all sent bytes have arrived
    void finish_sending();
    void reset(); // RST
    void close() { fd_.close(); }

    // Reads up to `most` more bytes; empty at the end of the stream or after the time limit.
    std::string read_some(std::size_t most = 65536);
    // Reads until the other side closes. `was_closed` is false after the time limit.
    std::string read_all();
    bool was_closed() const { return closed_; }
    bool was_reset() const { return was_reset_; }
    // Reads one whole response with its body (length or chunked framing); interim responses are separate.
    std::string read_response(bool has_body = true);
    std::string read_until(std::string_view mark);
    // Sets small kernel buffers, so that a side that does not read blocks the other side soon.
    void shrink_buffers();
    int descriptor() const { return fd_.get(); }

private:
    file_descriptor fd_;
    std::string pending_;
    bool closed_ = false;
    bool was_reset_ = false;
};

// An upstream that runs `serve` for each connection on a separate thread and records every received byte.
class raw_upstream
{
public:
    using handler = std::function<void(raw_upstream&, raw_connection&)>;
    explicit raw_upstream(handler serve);
    ~raw_upstream();

    std::uint16_t port() const { return port_; }
    // Reads one request's head (and a body of known length) and records it.
    std::string read_request(raw_connection& from);
    void record(std::string_view bytes);
    std::string received() const;
    std::size_t connections() const { return connections_; }
    void wait_for_received(std::size_t bytes) const;
    // Waits until this many handlers have returned.
    void wait_for_ended(std::size_t handlers) const;

private:
    void accept_loop();
    handler serve_;
    file_descriptor listener_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> connections_{0};
    mutable std::mutex lock_;
    mutable std::condition_variable changed_;
    std::string received_;
    std::size_t ended_ = 0;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

// Answers every request on a connection with `response`.
raw_upstream::handler always(std::string response);

// Returns the size of the first message in `bytes`, head and body; 0 while it is incomplete. Accepts only the form in
// which the gateway writes: requests, and responses with a length or chunks.
std::size_t whole_message(std::string_view bytes);
// Returns the body without its framing.
std::string plain_body(std::string_view message);
std::size_t count(std::string_view in, std::string_view what);

// An upstream that keeps every connection's bytes apart and answers each request once it is whole.
class recorder
{
public:
    explicit recorder(std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");

    raw_upstream& server() { return up_; }
    std::vector<std::string> requests() const; // the complete ones, in the order of their completion
    std::string last() const;
    std::string unfinished() const; // bytes of any connection that are not part of a complete request
    std::size_t connections() const { return up_.connections(); }
    // Waits until the gateway has closed all connections so far.
    void wait_until_closed() const { up_.wait_for_ended(up_.connections()); }

private:
    void serve(raw_connection& from);
    std::string answer_;
    mutable std::mutex lock_;
    std::vector<std::string> requests_;
    std::string unfinished_;
    raw_upstream up_; // last: its threads use the rest
};

// A malformed request, and the answer that a client gets.
struct malformed
{
    std::string number; // in hardening.md
    std::string bytes;
    unsigned status;
};
enum class reaches
{
    nothing, // no connection to the upstream
    a_part   // the upstream may receive the beginning of a request, never a whole one
};
// Sends each in one segment and byte by byte, followed by a valid request. Checks for one answer, a closed connection,
// and no complete request upstream.
void check_refused(const std::vector<malformed>& rows, reaches upstream);

// Returns how many file descriptors this process has open.
std::size_t open_descriptors();
// Returns how many of them are ends of pipes: a worker keeps the pipes of long answers.
std::size_t open_pipe_ends();
// Waits until `holds` returns true, for at most 30 seconds. Returns its last result.
bool eventually(const std::function<bool()>& holds);

// The application in this process. `routes` is added to a listener, one memory store and an upstream `up`.
class running_gateway
{
public:
    // Runs a whole configuration, whose listeners have the address 127.0.0.1:0. At the call of `before_start` they
    // listen but do not accept yet.
    explicit running_gateway(const std::string& yaml, const std::function<void(running_gateway&)>& before_start = {});
    // Forwards everything to `upstream`.
    static std::string in_front_of(const raw_upstream& upstream, const std::string& more = "",
                                   const std::string& listener_options = "", const std::string& upstream_options = "");

    std::uint16_t port() const { return app_.ports().front(); }
    std::vector<std::uint16_t> ports() const { return app_.ports(); }
    raw_connection connect() const { return raw_connection::to(port()); }
    headgate::app& app() { return app_; }
    // Workers adopt it a moment later.
    void reload(const std::string& yaml);
    // Sends one request on a new connection and returns everything that the gateway sent.
    std::string ask(std::string_view request) const;

private:
    headgate::app app_;
};

unsigned status_of(std::string_view response);
std::string field_of(std::string_view response, std::string_view name); // empty when absent
std::string body_of(std::string_view response);

} // namespace headgate::tests
