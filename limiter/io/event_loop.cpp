#include "limiter/io/event_loop.hpp"

#include <boost/asio/post.hpp>

namespace headgate {

namespace {

constexpr std::size_t clients_per_turn = 32; // then other events are polled again

} // namespace

void event_loop::run()
{
    for (;;) {
        if (clients_.empty()) {
            context_.restart(); // a poll that finds no work stops the context
            if (context_.run_one() == 0)
                break;
        }
        work();
    }
}

void event_loop::turn(std::chrono::nanoseconds at_most)
{
    turn_began_.reset();
    context_.restart();
    if (clients_.empty() && ending_.empty())
        context_.run_one_for(at_most);
    work();
}

void event_loop::work()
{
    context_.restart();
    // Runs as a handler of Asio: allocations and posts are fast only inside a handler.
    if (!clients_.empty())
        asio::post(context_, [this] { run_clients(); });
    context_.poll();
    end_turn();
    turn_began_.reset(); // handlers that run while waiting belong to the next turn
}

void event_loop::run_clients()
{
    for (std::size_t i = 0; i < clients_per_turn && !clients_.empty(); ++i) {
        auto next = std::move(clients_.front());
        clients_.pop_front();
        std::move(next)();
    }
}

void event_loop::at_turn_end(turn_end& what)
{
    if (!std::exchange(what.is_queued_, true))
        ending_.push_back(&what);
}

void event_loop::forget(turn_end& gone)
{
    if (std::exchange(gone.is_queued_, false))
        std::erase(ending_, &gone);
}

void event_loop::end_turn()
{
    while (!ending_.empty()) {
        auto& what = *ending_.back();
        ending_.pop_back();
        what.is_queued_ = false;
        what.on_turn_end();
    }
}

} // namespace headgate
