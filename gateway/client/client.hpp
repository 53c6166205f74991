// What one request sees of its client, whatever the protocol: the HTTP/1 session implements it, one request at a time;
// streams of other protocols can. It carries status, end-to-end fields and body, never bytes of a protocol: framing,
// keep-alive, 100 Continue, dropping a body, lingering and reset belong to the implementation.
// Everything happens on the worker's thread.
#pragma once

#include "gateway/http/answer_head.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/http/ip_address.hpp"
#include "gateway/http/message.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/kernel_pipe.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace headgate {

using http::body_piece;

// Pieces of an answer's body that are sent together. A session that sends chunks makes one of each.
using body_pieces = std::span<const std::string_view>;

struct connection_facts
{
    http::ip_address peer;
    std::string_view scheme = "http";
};

// Bytes of one request on the wire.
struct transfer_counts
{
    std::uint64_t in = 0;        // head and body of the request
    std::uint64_t out = 0;       // of all that was sent
    std::uint64_t heads_out = 0; // how many of those are heads
};

enum class presence
{
    here,
    half_closed, // it has finished sending
    gone         // it will read no answer
};

// What a request waits for and can be made to stop waiting for.
class cancellable
{
public:
    virtual void cancel() = 0;

protected:
    ~cancellable() = default;
};

class client
{
public:
    // The request's head: views that stay valid until the request ends.
    const http::request_head& head() const { return *head_; }
    // Where its body ends, and what its connection fields ask for.
    const http::request_framing& framing() const { return *framing_; }
    // Returns why there is no valid head, or why the request must not be forwarded.
    http::http_error error() const { return error_; }
    const connection_facts& connection() const { return connection_; }
    const transfer_counts& transferred() const { return transferred_; }

    virtual bool has_read_body() const = 0;
    // What has arrived of the body and was not taken yet; no data and not done: nothing. Never waits.
    virtual body_piece take_body() = 0;
    // The same, and waits until there is some.
    virtual task<body_piece> read_body() = 0;
    // Whether the client waits to be told to send its body; and tells it. False: the client is gone.
    virtual bool awaits_continue() const = 0;
    virtual task<bool> send_continue() = 0;
    // Bytes behind the head, whatever they are: for a tunnel, after send_head(101).
    virtual task<body_piece> read_raw() = 0;
    // Ends reads of the body by another coroutine, now and later, until they are allowed again.
    virtual void stop_reading() = 0;
    virtual void resume_reading() = 0;

    // Each returns false when the client is gone, or takes nothing for too long.
    virtual task<bool> send_interim(const http::answer_head& head) = 0;
    // `end`: the answer ends with it.
    virtual task<bool> send_head(const http::answer_head& head, body_pieces first, bool end) = 0;
    virtual task<bool> send_body(body_pieces pieces, bool end) = 0;
    // Sends what the pipe holds, where may_splice() says that it can pass through the kernel.
    virtual bool may_splice() const = 0;
    virtual task<bool> send_pipe(kernel_pipe& from, bool end) = 0;

    // The client must see that its answer is broken (D3).
    virtual void abort() = 0;

    virtual presence look() = 0;
    // Cancels `waiting` when the client has gone, as is noticed about once a second. Null: no longer.
    virtual void watch(cancellable* waiting) = 0;

protected:
    ~client() = default;

    const http::request_head* head_ = nullptr;
    const http::request_framing* framing_ = nullptr;
    http::http_error error_ = http::http_error::none;
    connection_facts connection_;
    transfer_counts transferred_;
};

} // namespace headgate
