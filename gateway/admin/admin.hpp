// The operators' listener: /healthz, /readyz, /metrics. It has its own thread and event loop, so that it answers while
// the workers are busy. It listens on loopback unless configured otherwise, and requires a token when one is set.
#pragma once

#include "config/model.hpp"
#include "limiter/io/asio.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <prometheus/collectable.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
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
    // Binds. Throws std::system_error when the address cannot be bound.
    admin(const config::admin_config& config, sources from);
    ~admin() { stop(); }
    admin(const admin&) = delete;
    admin& operator=(const admin&) = delete;

    const config::host_port& address() const { return address_; } // with the actual port
    void start();
    void stop();
    void use_token(const config::secret& token);

private:
    using socket_type = asio::basic_stream_socket<asio::ip::tcp, executor>;
    using acceptor_type = asio::basic_socket_acceptor<asio::ip::tcp, executor>;
    using stream = boost::beast::basic_stream<asio::ip::tcp, executor>;

    task<> accept_clients();
    task<> serve(socket_type socket);
    admin_answer answer(std::string_view method, std::string_view target, std::string_view authorization) const;
    bool may_enter(std::string_view authorization) const;

    sources from_;
    config::host_port address_;
    mutable std::mutex lock_; // guards the token
    config::secret token_;
    asio::io_context io_{1};
    acceptor_type acceptor_;
    steady_timer pause_;
    std::set<stream*> open_;
    std::thread thread_;
};

// Returns whether both are equal. For secrets of equal length the time does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

} // namespace headgate
