// The answer on its way to the client, as fast as the slower side takes it.
#pragma once

#include "gateway/client/client.hpp"
#include "gateway/client/client_watch.hpp"
#include "gateway/http/answer_head.hpp"
#include "limiter/io/asio.hpp"

namespace headgate {

class body_upload;
class request;
class upstream_connection;

enum class relay_end
{
    complete,
    client_gone,
    cut // the upstream ended too early, or broke the framing of its body
};

// Relays the answer whose head has been read, then gives the upstream's connection back or discards it.
class answer_relay
{
public:
    answer_relay(request& r, upstream_connection& from, body_upload& upload) : r_(r), link_(from), upload_(upload) {}
    task<> run();

private:
    http::answer_head make_head();
    void take_body(std::size_t from);
    task<relay_end> relay_rest();
    task<relay_end> copy_rest(const client_watch& watch);
    void finish(relay_end how);

    request& r_;
    upstream_connection& link_;
    body_upload& upload_;
};

} // namespace headgate
