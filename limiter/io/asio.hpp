// The Boost.Asio types that headgate uses: with the concrete executor of an io_context, which costs less than
// any_io_executor (docs/decisions/0011-asio-and-beast.md), and the completion token that returns errors as values.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

namespace headgate {

namespace asio = boost::asio;
using boost::system::error_code;

using executor = asio::io_context::executor_type;
using steady_time = std::chrono::steady_clock::time_point;
using steady_timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, executor>;
using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, executor>; // TCP or Unix

// A coroutine. It starts when it is awaited or spawned, and runs on the thread of its io_context.
// GCC 12 miscompiles co_await inside a condition and aggregate temporaries as arguments of a coroutine: every co_await
// stands in a statement of its own, and aggregate arguments have a name.
template <class T = void>
using task = asio::awaitable<T, executor>;

// const auto [error, bytes] = co_await socket.async_read_some(buffer, as_result);
inline constexpr auto as_result = asio::as_tuple(asio::deferred);

struct io_result
{
    error_code error;
    std::size_t bytes = 0;
};

// Starts a coroutine in the background. An exception that it does not catch leaves the event loop too.
template <class T>
void spawn(const executor& on, task<T> work)
{
    asio::co_spawn(on, std::move(work), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
}

} // namespace headgate
