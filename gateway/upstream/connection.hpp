// One connection to a server of an upstream. It may be read and written at once, by one coroutine each.
#pragma once

#include "gateway/client/client.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/upstream/pool.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event_loop.hpp"
#include "limiter/io/kernel_pipe.hpp"
#include "limiter/io/socket_deadline.hpp"
#include "limiter/io/stream_writer.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace headgate {

class upstream_connection final : public cancellable
{
public:
    upstream_connection(event_loop& in, http::upstream_pool::connection_id id, std::uint32_t server)
        : socket_(in.context()), reading_(in, socket_), writer_(in, socket_), id_(id), server_(server)
    {}

    http::upstream_pool::connection_id id() const { return id_; }
    std::uint32_t server() const { return server_; }

    // May be called again with another address when it has failed.
    task<error_code> connect(asio::ip::tcp::endpoint to, deadline_list& within);
    // const io_result sent = co_await link.send(...): sends all of both; `within` bounds each wait for room.
    auto send(std::string_view first, std::string_view second, deadline_list& within)
    {
        return writer_.send(first, second, false, within);
    }
    // const io_result got = co_await link.read(...): appends what comes, as much as there is room for.
    auto read(http::byte_buffer& into, deadline_list& within)
    {
        const auto room = std::max(into.capacity() - into.size(), least_room);
        begin_read(within);
        return socket_.async_read_some(asio::buffer(into.prepare(room), room),
                                       asio::deferred([this, &into](const error_code& error, std::size_t bytes) {
                                           end_read();
                                           into.commit(bytes);
                                           return asio::deferred.values(io_result{error, bytes});
                                       }));
    }
    // The same through the kernel, into an empty pipe.
    task<error_code> read(kernel_pipe& into, std::size_t most, deadline_list& within);
    // While the request is still being sent an answer is not late: deadlines of reads begin when that has ended.
    void begin_upload() { is_uploading_ = true; }
    void end_upload()
    {
        is_uploading_ = false;
        restart_read_deadline();
    }
    // For the read that waits now, if there is one.
    void restart_read_deadline()
    {
        if (waits_within_ && !is_uploading_)
            reading_.arm(*waits_within_);
    }

    // The last read or connect or send ended because its time was over.
    bool read_timed_out() const { return reading_.expired(); }
    bool write_timed_out() const { return writer_.deadline().expired(); }

    // Ends whatever it waits for, and whatever it would wait for later: it can only be discarded then.
    void cancel() override { close(); }
    void close();
    // Whether nothing came on an idle connection and it is still open (D5).
    bool is_quiet();

private:
    static constexpr std::size_t least_room = 4096; // for a read

    void begin_read(deadline_list& within)
    {
        waits_within_ = &within;
        restart_read_deadline();
    }
    void end_read()
    {
        waits_within_ = nullptr;
        reading_.disarm();
    }

    stream_socket socket_;
    socket_deadline reading_;
    stream_writer<stream_socket> writer_;
    http::upstream_pool::connection_id id_;
    std::uint32_t server_;
    deadline_list* waits_within_ = nullptr; // of the read that waits
    bool is_uploading_ = false;
};

} // namespace headgate
