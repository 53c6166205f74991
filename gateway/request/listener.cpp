#include "gateway/request/listener.hpp"

#include "gateway/request/session.hpp"
#include "gateway/worker.hpp"

#include <boost/asio/ip/address.hpp>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace headgate {

namespace {

constexpr std::chrono::milliseconds out_of_descriptors_pause{50};
constexpr int turned_away_at_once = 64; // by a cap; they cost next to nothing

http::ip_address to_address(const sockaddr_storage& from)
{
    if (from.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
        return http::ip_address::v4(ntohl(v4.sin_addr.s_addr));
    }
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return http::ip_address::from_bytes(bytes);
}

} // namespace

listener::listener(worker& owner, const config::listener_config& config, std::shared_ptr<connection_caps> caps)
    : worker_(owner), config_(config), caps_(std::move(caps)), acceptor_(owner.sockets()), pause_(owner.sockets())
{
    auto& lists = owner.timeouts();
    head_timeout_ = &lists.list_for(config.timeouts.head);
    body_timeout_ = &lists.list_for(config.timeouts.body);
    idle_timeout_ = &lists.list_for(config.timeouts.idle);
    write_timeout_ = &lists.list_for(config.timeouts.write);
    linger_timeout_ = &lists.list_for(std::chrono::seconds{2});
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

listener::~listener()
{
    if (reserve_ >= 0)
        ::close(reserve_);
}

void listener::bind()
{
    const auto fail = [&](const char* doing, const error_code& error) {
        throw std::system_error(std::error_code(error), std::string(doing) + " " + config_.address.text());
    };
    error_code error;
    const auto address = asio::ip::make_address(config_.address.host, error);
    if (error)
        fail("cannot listen on", error);
    const asio::ip::tcp::endpoint endpoint(address, config_.address.port);
    const auto check = [&](int result) {
        if (result < 0)
            fail("cannot listen on", error_code(errno, boost::system::system_category()));
        return result;
    };
    const int fd = check(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    acceptor_.adopt(fd);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // clients inherit it
    if (address.is_v6()) // 0.0.0.0 and [::] are two listeners, as the configuration says
        ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    // A client is handed over with its first bytes, or after a second of silence: no wait between accepting and
    // reading.
    ::setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on);
    check(::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())));
    check(::listen(fd, 4096));
    asio::ip::tcp::endpoint bound(endpoint);
    auto size = static_cast<socklen_t>(bound.capacity());
    check(::getsockname(fd, bound.data(), &size));
    port_ = bound.port();
}

void listener::open() { start(accept_clients()); }

void listener::close()
{
    acceptor_.close();
    pause_.cancel();
}

task<void> listener::accept_clients()
{
    for (;;) {
        const auto ready = co_await acceptor_.until_readable();
        if (ready.error || !acceptor_.is_open())
            co_return;
        auto next = accept_next();
        for (int turned_away = 0; next.fd >= 0;) {
            const bool begun = admit(next);
            next = accept_next();
            // A client's first request goes as far as it can at once. Where many wait, after a pause or in a flood, one
            // is begun at a time: answers come first, nobody who is here already starves, who came first leaves first.
            if (next.fd < 0 || (!begun && ++turned_away % turned_away_at_once != 0))
                continue;
            co_await worker_.sockets().others_first();
            if (!acceptor_.is_open()) {
                ::close(next.fd);
                co_return;
            }
        }
        if (!next.out_of_descriptors)
            continue;
        shed_one();
        pause_.expires_after(out_of_descriptors_pause);
        co_await until_expired(pause_);
    }
}

listener::arrival listener::accept_next()
{
    for (;;) {
        sockaddr_storage from;
        socklen_t size = sizeof from;
        const int fd = ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            return {.fd = fd, .peer = to_address(from)};
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return {.out_of_descriptors = true};
        acceptor_.exhausted();
        return {};
    }
}

bool listener::admit(const arrival& client)
{
    worker_.counters().accepted.add();
    if (!caps_->enter(client.peer)) {
        worker_.counters().refused_connections.add();
        ::close(client.fd);
        return false;
    }
    session::begin(worker_, *this, client.fd, client.peer);
    return true;
}

// Takes one waiting client on the reserve descriptor and closes it: better a closed connection than a hanging one.
void listener::shed_one()
{
    worker_.counters().refused_connections.add();
    if (reserve_ >= 0)
        ::close(reserve_);
    const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0)
        ::close(fd);
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    spdlog::warn("{}: out of file descriptors; new clients wait", config_.address.text());
}

} // namespace headgate
