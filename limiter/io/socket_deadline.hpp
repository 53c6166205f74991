// A deadline that ends what a socket waits for and remembers that it did. Reading and writing at once take one each.
#pragma once

#include "limiter/io/deadline.hpp"
#include "limiter/io/reactor.hpp"

namespace headgate {

class socket_deadline final : public deadline
{
public:
    explicit socket_deadline(tcp_socket& of) : socket_(of) {}

    void arm(deadline_list& within)
    {
        expired_ = false;
        within.arm(*this, socket_.turn_began());
    }
    bool expired() const { return expired_; }
    void forget() { expired_ = false; }

private:
    void on_deadline() override
    {
        expired_ = true;
        socket_.cancel();
    }

    tcp_socket& socket_;
    bool expired_ = false;
};

} // namespace headgate
