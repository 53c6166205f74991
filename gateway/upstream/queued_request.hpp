// A request that waits for a connection to its upstream.
#pragma once

#include "gateway/client/client.hpp"
#include "gateway/upstream/pool.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event.hpp"
#include "limiter/io/event_loop.hpp"

namespace headgate {

class upstream;

// Waits until the pool has a place for it, its time is over, or its client has gone.
class queued_request final : public cancellable, private deadline
{
public:
    queued_request(upstream& in, http::upstream_pool::waiter_id id, event_loop& loop);

    // Returns `refuse` when it came to nothing.
    task<http::upstream_pool::ticket> wait();
    // The pool has already taken it out of its queue. It goes on from the event loop.
    void end(const http::upstream_pool::ticket& place);
    // Gives the place in the queue up.
    void cancel() override;

private:
    void on_deadline() override { cancel(); }

    upstream& in_;
    http::upstream_pool::waiter_id id_;
    event_loop& loop_;
    http::upstream_pool::ticket place_;
    bool is_waiting_ = true;
    event ended_;
};

} // namespace headgate
