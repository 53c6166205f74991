// The coroutine type of the request path. A task runs when it is awaited, on the thread of its worker, and its frame
// comes from that thread's pool: asio::awaitable cannot promise that (docs/decisions/0003-tasks.md).
// GCC 12 miscompiles co_await inside conditions and operators: every await is a statement of its own.
#pragma once

#include "limiter/io/frame_pool.hpp"

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace headgate {

template <class T = void>
class task;

namespace detail {

struct pooled_frame
{
    static void* operator new(std::size_t size) { return frame_pool::allocate(size); }
    static void operator delete(void* at, std::size_t size) noexcept { frame_pool::release(at, size); }
};

struct task_promise_base : pooled_frame
{
    std::coroutine_handle<> waiting = std::noop_coroutine();
    std::exception_ptr failure;

    std::suspend_always initial_suspend() noexcept { return {}; }
    struct resume_waiting
    {
        bool await_ready() noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept
        {
            return done.promise().waiting;
        }
        void await_resume() noexcept {}
    };
    resume_waiting final_suspend() noexcept { return {}; }
    void unhandled_exception() { failure = std::current_exception(); }
};

template <class T>
struct task_promise : task_promise_base
{
    std::optional<T> value;
    task<T> get_return_object();
    template <class U>
    void return_value(U&& v)
    {
        value.emplace(std::forward<U>(v));
    }
    T take() { return std::move(*value); }
};

template <>
struct task_promise<void> : task_promise_base
{
    task<void> get_return_object();
    void return_void() {}
    void take() {}
};

} // namespace detail

template <class T>
class [[nodiscard]] task
{
public:
    using promise_type = detail::task_promise<T>;

    explicit task(std::coroutine_handle<promise_type> h) : frame_(h) {}
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
    task& operator=(task&&) = delete;
    ~task()
    {
        if (frame_)
            frame_.destroy();
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) noexcept
    {
        frame_.promise().waiting = waiting;
        return frame_;
    }
    T await_resume()
    {
        if (frame_.promise().failure)
            std::rethrow_exception(frame_.promise().failure);
        return frame_.promise().take();
    }

private:
    std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object()
{
    return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)};
}
inline task<void> task_promise<void>::get_return_object()
{
    return task<void>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

// Runs at once and owns itself.
struct detached
{
    struct promise_type : pooled_frame
    {
        detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); } // tasks that are started catch their own
    };
};

} // namespace detail

// What is nearly always done at once. Operation::now() returns an optional result; when that is empty, the task that
// Operation::later() makes goes on. Costs no frame where there is nothing to wait for.
template <class Operation>
class [[nodiscard]] at_once_or_later
{
public:
    explicit at_once_or_later(Operation what) : what_(std::move(what)) {}

    bool await_ready()
    {
        result_ = what_.now();
        return result_.has_value();
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting)
    {
        rest_.emplace(what_.later());
        return rest_->await_suspend(waiting);
    }
    auto await_resume() { return rest_ ? rest_->await_resume() : *std::move(result_); }

private:
    Operation what_;
    decltype(std::declval<Operation&>().now()) result_;
    std::optional<decltype(std::declval<Operation&>().later())> rest_;
};

// Starts a task that nobody waits for.
inline void start(task<void> work)
{
    [](task<void> owned) -> detail::detached { co_await owned; }(std::move(work));
}

} // namespace headgate
