// The states of a pool of upstream connections, without a socket and without a clock: the caller connects, closes,
// waits and passes the time in. One pool per worker and upstream; not thread-safe. Idle connections are taken youngest
// first, so that the rest can expire; servers take turns; a bounded queue waits when every server is full.
#pragma once

#include "gateway/http/methods.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace headgate::http {

struct pool_limits
{
    std::uint32_t connections = 256; // a server
    std::uint32_t waiting = 1024;    // requests that may wait for a connection
    std::chrono::milliseconds idle_timeout{60'000};
    std::uint32_t failures_to_rest = 3; // connect failures in a row, then the server is left alone
    std::chrono::milliseconds rest_time{5'000};
};

class upstream_pool
{
public:
    using clock_time = std::chrono::steady_clock::time_point;
    using connection_id = std::uint32_t; // small and reused: an index into the caller's own table
    using waiter_id = std::uint32_t;
    static constexpr std::uint32_t nothing = 0xffffffff;

    upstream_pool(std::uint32_t servers, const pool_limits& limits);

    enum class action : std::uint8_t
    {
        use_idle, // `connection` is open; check it for unsolicited bytes first (D5), then use or discard it
        open_new, // connect `connection` to `server`, then say connected or connect_failed
        wait,     // keep `waiter`; a later give_back, discard or connect_failed answers it, or cancel_wait ends it
        refuse    // the queue is full
    };
    struct ticket
    {
        action what = action::refuse;
        std::uint32_t server = nothing;
        connection_id connection = nothing;
        waiter_id waiter = nothing;
    };

    // `avoid`: the server that just failed this request; used only when there is no other.
    ticket checkout(clock_time now, std::uint32_t avoid = nothing);

    // A freed place or connection may go to the request that has waited longest: then `what` is use_idle or open_new
    // and `waiter` is that request. `what` is wait when no request gets it.
    ticket give_back(connection_id connection,
                     clock_time now); // the exchange ended cleanly, the connection can be reused
    ticket discard(connection_id connection, clock_time now); // it was closed while in use
    ticket connect_failed(connection_id connection, clock_time now);
    void connected(connection_id connection);

    void cancel_wait(waiter_id waiter);

    // An idle connection was closed by its server or sent bytes unasked. False when it was not idle.
    bool drop_idle(connection_id connection);
    // One connection that has been idle for too long, or `nothing`; ask until there is none, and close each.
    connection_id expire(clock_time now);

    std::uint32_t open_connections() const noexcept { return open_; }
    std::uint32_t idle_connections() const noexcept { return idle_; }
    std::uint32_t waiting() const noexcept { return waiting_; }
    std::uint32_t server_of(connection_id connection) const { return connections_[connection].server; }
    bool resting(std::uint32_t server, clock_time now) const { return servers_[server].rests_until > now; }

private:
    // Doubly linked by index, so that any member can leave at once.
    struct link
    {
        std::uint32_t next = nothing;
        std::uint32_t previous = nothing;
    };
    struct list
    {
        std::uint32_t first = nothing;
        std::uint32_t last = nothing;
    };
    struct connection_state : link
    {
        std::uint32_t server = nothing;
        bool in_use = false;
        bool is_idle = false;
        clock_time idle_since{};
    };
    struct waiter_state : link
    {
        bool queued = false;
    };
    struct server_state
    {
        list idle; // oldest first
        std::uint32_t open = 0;
        std::uint32_t failures = 0; // in a row
        clock_time rests_until{};
    };

    template <class Item>
    static void push_back(std::vector<Item>& items, list& to, std::uint32_t id);
    template <class Item>
    static void unlink(std::vector<Item>& items, list& from, std::uint32_t id);

    std::uint32_t choose_server(clock_time now, std::uint32_t avoid);
    ticket take_from(std::uint32_t server);
    ticket serve_waiter(clock_time now);
    ticket enqueue();
    waiter_id dequeue();
    connection_id new_connection(std::uint32_t server);
    void release(connection_id connection);
    void leave_idle(connection_id connection);

    pool_limits limits_;
    std::vector<server_state> servers_;
    std::vector<connection_state> connections_;
    std::vector<connection_id> free_connections_;
    std::vector<waiter_state> waiters_;
    std::vector<waiter_id> free_waiters_;
    list queue_; // longest waiting first
    std::uint32_t turn_ = 0;
    std::uint32_t open_ = 0;
    std::uint32_t idle_ = 0;
    std::uint32_t waiting_ = 0;
};

// What is known of an exchange that failed on an upstream connection.
struct failed_attempt
{
    method_id method = method_id::other;
    std::uint64_t request_bytes_sent = 0;
    std::uint64_t response_bytes_received = 0;
    bool connected = true; // false: the connection could not even be opened
    bool reused_connection = false;
    bool body_replayable = false; // no body, or none of it was dropped yet
    unsigned retries = 0;         // already made for this request
};

// C10: whether the request may be sent once more. Never a second time, never after a byte of an answer.
bool may_retry(const failed_attempt& attempt) noexcept;

} // namespace headgate::http
