#include "gateway/upstream/queued_request.hpp"

#include "gateway/upstream/upstream.hpp"

namespace headgate {

queued_request::queued_request(upstream& in, http::upstream_pool::waiter_id id, event_loop& loop)
    : in_(in), id_(id), loop_(loop)
{
    if (in_.queue_.size() <= id)
        in_.queue_.resize(id + 1);
    in_.queue_[id] = this;
    in_.connect_timeout_->arm(*this, loop.turn_began());
}

task<http::upstream_pool::ticket> queued_request::wait()
{
    while (is_waiting_)
        co_await ended_.wait();
    co_return place_;
}

void queued_request::end(const http::upstream_pool::ticket& place)
{
    place_ = place;
    is_waiting_ = false;
    disarm();
    in_.queue_[id_] = nullptr;
    ended_.notify_later(loop_.get_executor());
}

void queued_request::cancel()
{
    if (!is_waiting_)
        return;
    in_.pool_.cancel_wait(id_);
    end({});
}

} // namespace headgate
