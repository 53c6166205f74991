#include "limiter/io/timer.hpp"

#include "limiter/io/reactor.hpp"

#include <utility>

namespace headgate {

steady_timer::~steady_timer() { cancel(); }

void steady_timer::expires_at(steady_time at)
{
    cancel();
    expiry_ = at;
}

void steady_timer::expires_after(std::chrono::steady_clock::duration time)
{
    expires_at(std::chrono::steady_clock::now() + time);
}

void steady_timer::cancel()
{
    auto* const waiter = std::exchange(waited_by_, nullptr);
    if (!waiter)
        return;
    in_.timers_.remove(*this);
    waiter->result.error = asio::error::operation_aborted;
    in_.resume_later(waiter->waiting);
}

void steady_timer::arm(wait& by)
{
    waited_by_ = &by;
    in_.timers_.add(*this);
}

void timer_queue::expire(steady_time now)
{
    for (int i = 0; i < most_a_turn && !all_.empty() && nearest() <= now; ++i) {
        auto& timer = *all_.begin();
        all_.erase(all_.begin());
        std::exchange(timer.waited_by_, nullptr)->waiting.resume();
    }
}

} // namespace headgate
