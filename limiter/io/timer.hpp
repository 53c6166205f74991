// Timers of an event loop, awaited by tasks: a few that wait for a moment of their own. What every request has is a
// deadline (deadline.hpp), not a timer.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>

namespace headgate {

namespace asio = boost::asio;
using boost::system::error_code;
using steady_time = std::chrono::steady_clock::time_point;

struct io_result
{
    error_code error;
    std::size_t bytes = 0;
};

class reactor;

// One task may wait for it at a time.
class steady_timer : public boost::intrusive::set_base_hook<>
{
public:
    explicit steady_timer(reactor& in, steady_time at = {}) : in_(in), expiry_(at) {}
    ~steady_timer();
    steady_timer(const steady_timer&) = delete;
    steady_timer& operator=(const steady_timer&) = delete;

    steady_time expiry() const { return expiry_; }
    // Who waits is cancelled.
    void expires_at(steady_time at);
    void expires_after(std::chrono::steady_clock::duration time);
    // Who waits gets operation_aborted, soon, from the event loop.
    void cancel();

    bool operator<(const steady_timer& other) const { return expiry_ < other.expiry_; }

private:
    friend class timer_queue;
    friend auto until_expired(steady_timer& t);

    // Lives in the frame of who waits: the timer may be gone when it goes on.
    struct wait
    {
        steady_timer& timer;
        std::coroutine_handle<> waiting = {};
        io_result result = {};
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h)
        {
            waiting = h;
            timer.arm(*this);
        }
        io_result await_resume() const noexcept { return result; }
    };
    void arm(wait& by);

    reactor& in_;
    steady_time expiry_;
    wait* waited_by_ = nullptr;
};

// co_await until_expired(timer): without an error at its time, never before.
inline auto until_expired(steady_timer& t) { return steady_timer::wait{t}; }

// Those that somebody waits for, the nearest first.
class timer_queue
{
public:
    void add(steady_timer& t) { all_.insert(t); }
    void remove(steady_timer& t) { all_.erase(all_.iterator_to(t)); }
    bool empty() const { return all_.empty(); }
    steady_time nearest() const { return all_.begin()->expiry(); } // not when empty
    // Goes on with whoever waits for a moment up to `now`, the rest of very many in the next turn.
    void expire(steady_time now);

private:
    static constexpr int most_a_turn = 256;

    boost::intrusive::multiset<steady_timer, boost::intrusive::constant_time_size<false>> all_;
};

} // namespace headgate
