#include "limiter/io/event_loop.hpp"

#include <boost/asio/post.hpp>

namespace headgate {

namespace {

constexpr std::size_t clients_per_turn = 32; // then other events are polled again

} // namespace

void event_loop::run()
{
    context_.restart();
    context_.run();
}

void event_loop::turn(std::chrono::nanoseconds at_most)
{
    context_.restart();
    context_.run_one_for(at_most);
    context_.poll();
}

void event_loop::end_turn_later()
{
    if (!std::exchange(is_ending_, true))
        asio::post(context_, [this] { end_turn(); });
}

void event_loop::end_turn()
{
    run_clients();
    while (!ending_.empty()) {
        auto& what = *ending_.back();
        ending_.pop_back();
        what.is_queued_ = false;
        what.on_turn_end();
    }
    turn_began_.reset();
    is_ending_ = false;
    if (!clients_.empty())
        end_turn_later();
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
    if (std::exchange(what.is_queued_, true))
        return;
    ending_.push_back(&what);
    end_turn_later();
}

void event_loop::forget(turn_end& gone)
{
    if (std::exchange(gone.is_queued_, false))
        std::erase(ending_, &gone);
}

} // namespace headgate
