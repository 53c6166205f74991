// One connection to a server of an upstream. It may be read and written at once, by one coroutine each.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/request/client.hpp"
#include "gateway/upstream/pool.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event_loop.hpp"
#include "limiter/io/kernel_pipe.hpp"
#include "limiter/io/socket_deadline.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string_view>

namespace headgate {

class upstream_connection final : public cancellable
{
public:
    upstream_connection(event_loop& in, http::upstream_pool::connection_id id, std::uint32_t server)
        : socket_(in.context()), reading_(in, socket_), writing_(in, socket_), id_(id), server_(server)
    {}

    http::upstream_pool::connection_id id() const { return id_; }
    std::uint32_t server() const { return server_; }

    // May be called again with another address when it has failed.
    task<error_code> connect(asio::ip::tcp::endpoint to, deadline_list& within);
    // Sends all of both; `within` bounds each wait for room.
    task<bool> send(std::string_view first, std::string_view second, deadline_list& within);
    // Appends what comes, as much as there is room for.
    task<error_code> read(http::byte_buffer& into, deadline_list& within);
    // The same through the kernel, into an empty pipe.
    task<error_code> read(kernel_pipe& into, std::size_t most, deadline_list& within);
    // The last read or connect or send ended because its time was over.
    bool read_timed_out() const { return reading_.expired(); }
    bool write_timed_out() const { return writing_.expired(); }

    // Ends whatever it waits for, and whatever it would wait for later: it can only be discarded then.
    void cancel() override;
    void close();
    // Whether nothing came on an idle connection and it is still open (D5).
    bool is_quiet();

private:
    stream_socket socket_;
    socket_deadline reading_, writing_;
    http::upstream_pool::connection_id id_;
    std::uint32_t server_;
    bool is_cancelled_ = false;
};

} // namespace headgate
