// One listening socket of one worker. Every worker has its own on the same address (listening_socket.hpp); the kernel
// spreads the clients. Out of file descriptors it pauses instead of spinning, and recovers by itself (O3). Its sessions
// share its ownership: it lives until the last of them has ended.
#pragma once

#include "config/model.hpp"
#include "gateway/client/connection_caps.hpp"
#include "gateway/client/listening_socket.hpp"
#include "gateway/http/ip_address.hpp"
#include "limiter/io/asio.hpp"
#include "limiter/io/deadline.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/smart_ptr/local_shared_ptr.hpp>

#include <cstdint>
#include <memory>

namespace headgate {

class worker;

// One listener of the configuration for one worker: a new one has a socket, one that exists is found by its caps.
struct wanted_listener
{
    config::listener_config config;
    std::shared_ptr<connection_caps> caps; // shared by the listeners of all workers on one address
    listening_socket socket;
};

// What sessions go by. Immutable: a request keeps what it began with when a reload changes the listener.
struct listener_settings
{
    listener_settings(deadlines& lists, config::listener_config from);

    config::listener_config config;
    // The lists in which sessions arm their deadlines.
    deadline_list& head_timeout;
    deadline_list& body_timeout;
    deadline_list& idle_timeout;
    deadline_list& write_timeout;
    deadline_list& linger_timeout; // for what a client still sends after the last answer
};
using shared_settings = boost::local_shared_ptr<const listener_settings>;

class listener
{
public:
    listener(worker& owner, wanted_listener from);
    ~listener();

    const shared_settings& settings() const { return settings_; }
    connection_caps& caps() { return *caps_; }
    bool is_at(const connection_caps& address) const { return caps_.get() == &address; }
    bool is_closed() const { return !acceptor_.is_open(); }

    void use(config::listener_config config); // another configuration for the same address
    void open(boost::local_shared_ptr<listener> self) { spawn(acceptor_.get_executor(), accept_clients(self)); }
    void close();

private:
    using acceptor = asio::basic_socket_acceptor<asio::ip::tcp, executor>;

    task<> accept_clients(boost::local_shared_ptr<listener> self);
    void admit(boost::local_shared_ptr<listener> self, stream_socket client, const asio::ip::tcp::endpoint& peer);
    void shed_one();

    worker& worker_;
    shared_settings settings_;
    std::shared_ptr<connection_caps> caps_;
    acceptor acceptor_;
    steady_timer pause_;
    int reserve_ = -1; // given up for a moment to tell a client that there is no room
};

} // namespace headgate
