// While an upstream is awaited nobody reads from the client; this looks once a second whether it has gone, and then
// ends what is awaited for it: a connection, or a place in the queue for one.
#pragma once

#include "gateway/request/session.hpp"
#include "limiter/io/deadline.hpp"

#include <chrono>

namespace headgate {

template <class Awaited> // has cancel()
class watch_client : private deadline
{
public:
    watch_client(session& client, Awaited& awaited) : client_(client), awaited_(awaited) { arm(); }
    bool client_is_gone() const { return gone_; }

private:
    void arm() { client_.owner().watch_list().arm(*this, client_.owner().sockets().turn_began()); }
    void on_deadline() override
    {
        gone_ = client_.is_reset();
        if (gone_)
            awaited_.cancel();
        else
            arm();
    }

    session& client_;
    Awaited& awaited_;
    bool gone_ = false;
};

} // namespace headgate
