// The operators' listener: /healthz, /readyz, /metrics. It has its own thread and event loop, so that it answers while
// the workers are busy. It listens on loopback unless configured otherwise. admin/access.hpp says who may read it.
#pragma once

#include "config/model.hpp"
#include "gateway/admin/access.hpp"
#include "gateway/client/listening_socket.hpp"
#include "limiter/io/asio.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/intrusive/list.hpp>
#include <prometheus/collectable.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace headgate {

// Why this gateway should get no clients, and which parts of it work with restrictions.
struct readiness
{
    std::vector<std::string> reasons; // empty: ready
    std::vector<std::string> warnings;
};

struct admin_answer
{
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
};

class admin
{
public:
    struct sources
    {
        std::function<readiness()> ready;
        const prometheus::Collectable& metrics;
    };
    // `at` is one socket.
    admin(const config::admin_config& config, listening_sockets at, sources from);
    ~admin() { stop(); }
    admin(const admin&) = delete;
    admin& operator=(const admin&) = delete;

    const config::host_port& address() const { return address_; } // with the actual port
    void start();
    void stop();
    // Stops accepting and closes connections without a request; what is being answered is finished.
    void retire();
    bool has_ended() const { return has_ended_; } // a retired one, some time later
    // Changes who may read it. The address stays.
    void use(const config::admin_config& config);

private:
    using socket_type = asio::basic_stream_socket<asio::ip::tcp, executor>;
    using acceptor_type = asio::basic_socket_acceptor<asio::ip::tcp, executor>;
    using stream = boost::beast::basic_stream<asio::ip::tcp, executor>;

    task<> accept_clients();
    task<> serve(socket_type socket);
    void make_room();
    admin_access access_for(std::string_view host, std::string_view authorization) const;
    admin_answer answer(std::string_view method, std::string_view target, admin_access access) const;

    // Unlinks itself when it ends.
    struct connection : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
    {
        explicit connection(socket_type s) : client(std::move(s)) {}
        stream client;
        bool has_request = false;
    };

    sources from_;
    config::host_port address_;
    mutable std::mutex lock_; // guards config_
    config::admin_config config_;
    asio::io_context io_{1};
    acceptor_type acceptor_;
    steady_timer pause_;
    // First the one that has been without a request for the longest.
    boost::intrusive::list<connection, boost::intrusive::constant_time_size<false>> open_;
    std::thread thread_;
    std::atomic<bool> has_ended_{false};
};

} // namespace headgate
