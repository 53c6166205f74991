// Lets one coroutine wait for another one of the same thread. Asio's awaitables wait for Asio's operations only; a
// timer that is cancelled would serve too, at thirty times the price.
#pragma once

#include "limiter/io/asio.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/post.hpp>

#include <utility>

namespace headgate {

class event
{
public:
    event() = default;
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    // co_await e.wait(): until notify() is called after this. One coroutine may wait at a time; what it waits for is a
    // condition of its own, tested before and after:
    //     while (!is_done)
    //         co_await done.wait();
    auto wait()
    {
        return asio::async_initiate<const asio::deferred_t, void()>(
            [this](auto handler) {
                waiter resumes(std::move(handler));
                swap(resumes);
            },
            asio::deferred);
    }
    bool is_awaited() const { return static_cast<bool>(waiter_); }

    // Resumes the waiting coroutine inside this call. The event may be gone afterwards.
    void notify()
    {
        waiter resumes;
        swap(resumes);
        if (resumes)
            std::move(resumes)();
    }
    // Resumes it from the event loop.
    void notify_later(const executor& on)
    {
        waiter resumes;
        swap(resumes);
        if (resumes)
            asio::post(on, std::move(resumes));
    }

private:
    using waiter = asio::any_completion_handler<void()>;
    // Swapped, never assigned: the move assignment of Boost 1.81 calls itself without end.
    void swap(waiter& other) { waiter_.swap(other); }

    waiter waiter_;
};

} // namespace headgate
