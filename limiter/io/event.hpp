// Lets one coroutine wait for another one of the same thread. Asio's awaitables wait for Asio's operations only;
// cancelling a timer would work too, at thirty times the cost.
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

    // co_await e.wait() suspends until the next notify(). One coroutine may wait at a time. Its condition is a separate
    // variable, which it tests before and after:
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
    // Resumes the waiting coroutine from the event loop.
    void notify_later(const executor& on)
    {
        waiter resumes;
        swap(resumes);
        if (resumes)
            asio::post(on, std::move(resumes));
    }

private:
    using waiter = asio::any_completion_handler<void()>;
    // Swapped, never assigned: the move assignment of Boost 1.81 recurses endlessly.
    void swap(waiter& other) { waiter_.swap(other); }

    waiter waiter_;
};

} // namespace headgate
