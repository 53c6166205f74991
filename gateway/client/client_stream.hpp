// The stream of one client connection with its deadlines: reads, writes, looks whether the client is there. Generic
// over the stream, which is a socket or something over one.
#pragma once

#include "gateway/client/client.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event_loop.hpp"
#include "limiter/io/socket_deadline.hpp"
#include "limiter/io/stream_writer.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace headgate {

template <class Stream>
class client_stream
{
public:
    client_stream(event_loop& in, Stream stream)
        : loop_(in), stream_(std::move(stream)), reading_(in, socket()), writer_(in, stream_)
    {
        error_code ignored;
        socket().non_blocking(true, ignored); // for read_now
    }

    bool is_open() const { return socket().is_open(); }

    // co_await stream.read_when_idle(...): waits behind the clients that have been ready for longer.
    auto read_when_idle(std::span<char> into)
    {
        return stream_.async_read_some(asio::buffer(into.data(), into.size()),
                                       asio::bind_executor(loop_.clients(), as_result));
    }
    auto read(char* at, std::size_t most) { return stream_.async_read_some(asio::buffer(at, most), as_result); }
    // Reads what has arrived; 0: nothing, or the end, which the next read meets.
    std::size_t read_now(char* at, std::size_t most);
    // The deadline of reads, which the session arms for whatever it waits for.
    socket_deadline& reading() { return reading_; }

    // const io_result sent = co_await stream.send(...): fewer bytes than given, when the client is gone or takes
    // nothing for too long; `within` bounds each wait for room. `is_last`: these bytes leave together with the end of
    // the connection, which follows at once, in one segment where they fit.
    auto send(std::string_view first, std::string_view second, bool is_last, deadline_list& within)
    {
        return writer_.send(first, second, is_last, within);
    }
    static constexpr bool may_splice = std::is_same_v<Stream, stream_socket>;
    // Returns how many bytes are left.
    task<std::size_t> send(kernel_pipe& from, deadline_list& within);

    // Not by reading: requests that wait in the socket would hide the end.
    presence look() const;
    bool has_unread() const;

    void cancel();
    void finish_sending();
    void close();
    void reset(); // closes; the client sees a broken connection

private:
    auto& socket() { return stream_.lowest_layer(); }
    auto& socket() const { return const_cast<client_stream*>(this)->stream_.lowest_layer(); }

    event_loop& loop_;
    Stream stream_;
    socket_deadline reading_;
    stream_writer<Stream> writer_;
};

} // namespace headgate
