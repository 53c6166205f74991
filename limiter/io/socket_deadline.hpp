// A deadline that cancels a socket's operations and records that it did. Simultaneous reading and writing need one
// each.
#pragma once

#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"
#include "limiter/io/event_loop.hpp"

#include <boost/asio/basic_socket.hpp>

namespace headgate {

class socket_deadline final : public deadline
{
public:
    using socket = asio::basic_socket<asio::generic::stream_protocol, executor>; // the lowest layer of a stream

    socket_deadline(event_loop& in, socket& of) : loop_(in), socket_(of) {}

    void arm(deadline_list& within)
    {
        expired_ = false;
        within.arm(*this, loop_.turn_began());
    }
    bool expired() const { return expired_; }

private:
    void on_deadline() override
    {
        expired_ = true;
        error_code ignored;
        socket_.cancel(ignored);
    }

    event_loop& loop_;
    socket& socket_;
    bool expired_ = false;
};

} // namespace headgate
