// The event loop of a thread: Asio's io_context with two additions. Clients that have sent something wait in a FIFO
// behind all other events, so that started requests are finished before new ones start: few are in progress at a time,
// and their memory is still in the CPU's cache. And some work is done once at the end of a turn, such as sending the
// commands for Redis that the turn has produced.
#pragma once

#include "limiter/io/asio.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace headgate {

class event_loop;

// Work that is done once at the end of a turn.
class turn_end
{
public:
    virtual void on_turn_end() = 0;

protected:
    virtual ~turn_end() = default;

private:
    friend class event_loop;
    bool is_queued_ = false;
};

class event_loop
{
public:
    // An executor for asio::bind_executor: a completion handler that is bound to it waits in the FIFO of clients.
    class client_executor
    {
    public:
        explicit client_executor(event_loop& in) noexcept : loop_(&in) {}
        template <class Function>
        void execute(Function&& f) const
        {
            loop_->clients_.emplace_back(std::forward<Function>(f));
            loop_->end_turn_later();
        }
        asio::execution_context& query(asio::execution::context_t) const noexcept { return loop_->context_; }
        static constexpr asio::execution::blocking_t query(asio::execution::blocking_t)
        {
            return asio::execution::blocking.never;
        }
        friend bool operator==(const client_executor&, const client_executor&) noexcept = default;

    private:
        event_loop* loop_;
    };

    event_loop() = default;
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    asio::io_context& context() { return context_; }
    executor get_executor() { return context_.get_executor(); }
    client_executor clients() { return client_executor(*this); }

    // co_await loop.let_clients_go_first(): goes on behind the clients that wait.
    auto let_clients_go_first() { return asio::post(asio::bind_executor(clients(), asio::deferred)); }

    // Runs until no coroutine and no operation is left.
    void run();
    // Runs what is ready. Waits for the first event, for `at_most`.
    void turn(std::chrono::nanoseconds at_most);

    // Returns the time of this turn: precise enough for deadlines, and read once per turn.
    steady_time turn_began()
    {
        if (!turn_began_) {
            turn_began_ = std::chrono::steady_clock::now();
            end_turn_later();
        }
        return *turn_began_;
    }

    // Calls `what` once at the end of this turn, also if this is called several times.
    void at_turn_end(turn_end& what);
    void forget(turn_end& gone);

private:
    // Ends the turn behind the handlers that are ready now: a handler of its own, so that one run() of Asio's lasts as
    // long as the thread. Asio keeps the memory of handlers and coroutines for the next ones until run() returns.
    void end_turn_later();
    void end_turn();
    void run_clients();

    asio::io_context context_{1};
    std::deque<asio::any_completion_handler<void()>> clients_;
    std::vector<turn_end*> ending_;
    std::optional<steady_time> turn_began_;
    bool is_ending_ = false; // end_turn is queued
};

} // namespace headgate
