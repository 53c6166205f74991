#include "gateway/client/listening_socket.hpp"

#include "limiter/io/asio.hpp"
#include "limiter/io/tcp_keep_alive.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace headgate {

namespace {

using acceptor = asio::basic_socket_acceptor<asio::ip::tcp, executor>;
using endpoint = asio::ip::tcp::endpoint;

constexpr int backlog = 4096;
constexpr int attempts = 5;

void share_port(acceptor& of)
{
    const int on = 1;
    if (::setsockopt(of.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
        throw boost::system::system_error(errno, boost::system::system_category());
}

acceptor make_acceptor(asio::io_context& in, const endpoint& at)
{
    acceptor made(in);
    made.open(at.protocol());
    ::fcntl(made.native_handle(), F_SETFD, FD_CLOEXEC);
    keep_alive(made.native_handle());               // clients inherit it
    made.set_option(acceptor::reuse_address(true)); // connections of a process before this one may be in TIME_WAIT
    if (at.address().is_v6())                       // 0.0.0.0 and [::] are two listeners, as the configuration says
        made.set_option(asio::ip::v6_only(true));
    return made;
}

// Fails when another socket listens at the address. Two sockets that are bound at the same moment may both be refused
// by listen(): then each tries again after a random time.
acceptor listen_alone(asio::io_context& in, const endpoint& at)
{
    std::random_device random;
    for (int attempt = 1;; ++attempt) {
        auto made = make_acceptor(in, at);
        made.bind(at);
        error_code error;
        made.listen(backlog, error);
        if (!error)
            return made;
        if (error != asio::error::address_in_use || attempt == attempts)
            throw boost::system::system_error(error);
        made.close();
        std::this_thread::sleep_for(std::chrono::milliseconds{random() % 50});
    }
}

acceptor listen_beside(acceptor& first, asio::io_context& in)
{
    const auto at = first.local_endpoint();
    auto made = make_acceptor(in, at);
    share_port(made);
    made.bind(at);
    made.listen(backlog);
    return made;
}

// Returns what to do about an address that cannot be bound.
std::string advice(const error_code& error, const config::host_port& address, std::span<const config::host_port> ours)
{
    if (error != asio::error::address_in_use)
        return {};
    for (const auto& own : ours) {
        if (own.port == address.port)
            return ": this gateway itself listens on " + own.text() +
                   ", and opens new addresses before it closes old ones; choose another port, or restart";
    }
    return ": another process listens there; stop it, or choose another port";
}

} // namespace

listening_socket::~listening_socket()
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

listening_sockets listen_on(const config::host_port& address, std::size_t count,
                            std::span<const config::host_port> ours)
{
    listening_sockets made{address, {}};
    asio::io_context context;
    try {
        auto first = listen_alone(context, endpoint(asio::ip::make_address(address.host), address.port));
        made.address.port = first.local_endpoint().port();
        share_port(first);
        while (made.sockets.size() + 1 < count)
            made.sockets.emplace_back(listen_beside(first, context).release());
        made.sockets.emplace_back(first.release());
    } catch (const boost::system::system_error& error) {
        throw std::system_error(std::error_code(error.code()),
                                "cannot listen on " + address.text() + advice(error.code(), address, ours));
    }
    return made;
}

} // namespace headgate
