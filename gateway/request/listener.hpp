// One listening socket of one worker. Every worker has its own on the same address (listening_socket.hpp); the kernel
// spreads the clients. Out of file descriptors it pauses instead of spinning, and recovers by itself (O3).
#pragma once

#include "config/model.hpp"
#include "gateway/http/ip_address.hpp"
#include "gateway/request/connection_caps.hpp"
#include "gateway/request/listening_socket.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace headgate {

class worker;

class listener
{
public:
    // `caps` is shared by the listeners of all workers on one address.
    listener(worker& owner, const config::listener_config& config, std::shared_ptr<connection_caps> caps,
             listening_socket socket);
    ~listener();

    const config::listener_config& config() const { return config_; }
    connection_caps& caps() { return *caps_; }

    void open(); // starts accepting, on the worker's thread
    void close();

    // The lists in which sessions of this listener arm their deadlines.
    deadline_list& head_timeout() { return *head_timeout_; }
    deadline_list& body_timeout() { return *body_timeout_; }
    deadline_list& idle_timeout() { return *idle_timeout_; }
    deadline_list& write_timeout() { return *write_timeout_; }
    deadline_list& linger_timeout() { return *linger_timeout_; }

private:
    using acceptor = asio::basic_socket_acceptor<asio::ip::tcp, executor>;

    task<> accept_clients();
    void admit(stream_socket client, const asio::ip::tcp::endpoint& peer);
    void shed_one();

    worker& worker_;
    config::listener_config config_;
    std::shared_ptr<connection_caps> caps_;
    acceptor acceptor_;
    steady_timer pause_;
    int reserve_ = -1; // given up for a moment to tell a client that there is no room
    deadline_list* head_timeout_;
    deadline_list* body_timeout_;
    deadline_list* idle_timeout_;
    deadline_list* write_timeout_;
    deadline_list* linger_timeout_; // for what a client still sends after the last answer
};

} // namespace headgate
