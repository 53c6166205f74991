// The sending side of a stream: sends all of one or two pieces, with a deadline for each wait for room.
#pragma once

#include "limiter/io/asio.hpp"
#include "limiter/io/socket_deadline.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <sys/socket.h>
#include <type_traits>
#include <utility>

namespace headgate {

template <class Stream>
class stream_writer
{
public:
    stream_writer(event_loop& in, Stream& to) : to_(to), deadline_(in, to.lowest_layer()) {}

    // const io_result sent = co_await writer.send(...): with an error, fewer bytes than given. `is_last`: the kernel
    // may keep these bytes until the stream is closed, so that both leave in one segment.
    auto send(std::string_view first, std::string_view second, bool is_last, deadline_list& within)
    {
        constexpr std::size_t most_at_once = 1024 * 1024;
        is_last_ = is_last;
        const std::array both{asio::buffer(first), asio::buffer(second)};
        const auto before_each_write = [this, &within](const error_code& error, std::size_t) {
            if (!error)
                deadline_.arm(within);
            return error ? 0 : most_at_once;
        };
        return asio::async_write(*this, both, before_each_write,
                                 asio::deferred([this](const error_code& error, std::size_t bytes) {
                                     deadline_.disarm();
                                     return asio::deferred.values(io_result{error, bytes});
                                 }));
    }
    socket_deadline& deadline() { return deadline_; }
    const socket_deadline& deadline() const { return deadline_; }

    // For asio::async_write.
    using executor_type = executor;
    executor get_executor() { return to_.get_executor(); }
    template <class Buffers, class Handler>
    void async_write_some(const Buffers& buffers, Handler&& handler)
    {
        auto second = asio::buffer_sequence_begin(buffers);
        const asio::const_buffer first = *second;
        const bool is_one = ++second == asio::buffer_sequence_end(buffers) || (*second).size() == 0;
        if (is_one) // costs the kernel less than a list of one
            write_some(first, std::forward<Handler>(handler));
        else
            write_some(buffers, std::forward<Handler>(handler));
    }

private:
    template <class Buffers, class Handler>
    void write_some(const Buffers& buffers, Handler&& handler)
    {
        if constexpr (std::is_same_v<Stream, stream_socket>)
            to_.async_send(buffers, is_last_ ? MSG_MORE : 0, std::forward<Handler>(handler));
        else
            to_.async_write_some(buffers, std::forward<Handler>(handler));
    }

    Stream& to_;
    socket_deadline deadline_;
    bool is_last_ = false;
};

} // namespace headgate
