// Asio's operations, awaited by our tasks: one operation, its memory from the thread's pool, its result as a value. For
// the admin listener; the request path has an event loop of its own (limiter/io/reactor.hpp).
#pragma once

#include "limiter/io/frame_pool.hpp"
#include "limiter/io/timer.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <utility>

namespace headgate {

using executor = asio::io_context::executor_type;
using asio_timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, executor>;

// co_await io_operation([&](auto handler) { timer.async_wait(std::move(handler)); })
template <class Start>
class io_operation
{
public:
    explicit io_operation(Start start) : start_(std::move(start)) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting)
    {
        waiting_ = waiting;
        start_(completion{this});
    }
    io_result await_resume() const noexcept { return result_; }

private:
    struct completion
    {
        using allocator_type = pool_allocator<void>;
        allocator_type get_allocator() const noexcept { return {}; }

        void operator()(error_code error, std::size_t bytes = 0) const
        {
            self->result_ = {error, bytes};
            self->waiting_.resume();
        }
        io_operation* self;
    };

    Start start_;
    std::coroutine_handle<> waiting_;
    io_result result_;
};

} // namespace headgate
