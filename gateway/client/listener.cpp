#include "gateway/client/listener.hpp"

#include "gateway/client/http1_session.hpp"
#include "gateway/log/rare_warnings.hpp"
#include "gateway/worker.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/smart_ptr/make_local_shared.hpp>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace headgate {

namespace {

constexpr std::chrono::milliseconds out_of_descriptors_pause{50};

http::ip_address to_address(const asio::ip::address& from)
{
    if (from.is_v4())
        return http::ip_address::v4(from.to_v4().to_uint());
    return http::ip_address::from_bytes(from.to_v6().to_bytes());
}

bool is_out_of_descriptors(const error_code& error)
{
    using namespace boost::system::errc;
    return error == too_many_files_open || error == too_many_files_open_in_system || error == no_buffer_space ||
           error == not_enough_memory;
}

bool is_v6(const config::host_port& address) { return address.host.find(':') != std::string::npos; }

void close_on_exec(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

} // namespace

listener_settings::listener_settings(deadlines& lists, config::listener_config from)
    : config(std::move(from)), head_timeout(lists.list_for(config.timeouts.head)),
      body_timeout(lists.list_for(config.timeouts.body)), idle_timeout(lists.list_for(config.timeouts.idle)),
      write_timeout(lists.list_for(config.timeouts.write)), linger_timeout(lists.list_for(std::chrono::seconds{2}))
{}

listener::listener(worker& owner, wanted_listener from)
    : worker_(owner), caps_(std::move(from.caps)),
      acceptor_(owner.loop().context(), is_v6(from.config.address) ? asio::ip::tcp::v6() : asio::ip::tcp::v4(),
                from.socket.release()),
      pause_(owner.loop().context())
{
    use(std::move(from.config));
    acceptor_.set_option(asio::ip::tcp::no_delay(true)); // clients inherit it
    // A client is handed over with its first bytes, or after a second of silence: no wait between accepting and
    // reading.
    const int seconds = 1;
    ::setsockopt(acceptor_.native_handle(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

listener::~listener()
{
    if (reserve_ >= 0)
        ::close(reserve_);
}

void listener::use(config::listener_config config)
{
    settings_ = boost::make_local_shared<const listener_settings>(worker_.timeouts(), std::move(config));
}

void listener::close()
{
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
}

// New clients wait behind those that are here already, in the same FIFO: in a flood answers come first, and one client
// is begun at a time.
task<> listener::accept_clients(boost::local_shared_ptr<listener> self)
{
    while (acceptor_.is_open()) {
        asio::ip::tcp::endpoint peer;
        asio::basic_stream_socket<asio::ip::tcp, executor> client(worker_.loop().context());
        const auto [error] =
            co_await acceptor_.async_accept(client, peer, asio::bind_executor(worker_.loop().clients(), as_result));
        if (!error && acceptor_.is_open())
            admit(self, stream_socket(std::move(client)), peer);
        if (!is_out_of_descriptors(error))
            continue;
        shed_one();
        pause_.expires_after(out_of_descriptors_pause);
        co_await pause_.async_wait(as_result);
    }
}

void listener::admit(boost::local_shared_ptr<listener> self, stream_socket client, const asio::ip::tcp::endpoint& peer)
{
    worker_.counters().accepted.add();
    const auto address = to_address(peer.address());
    if (!caps_->enter(address)) {
        worker_.counters().refused_connections.add();
        return;
    }
    close_on_exec(client.native_handle());
    auto made = std::make_unique<http1_session<stream_socket>>(worker_, std::move(self), std::move(client), address);
    auto& session = *made;
    spawn(worker_.loop().get_executor(), session.serve(std::move(made)));
}

// Takes one waiting client on the reserve descriptor and closes it: better a closed connection than a hanging one.
void listener::shed_one()
{
    worker_.counters().refused_connections.add();
    if (reserve_ >= 0)
        ::close(reserve_);
    const int descriptor = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor >= 0)
        ::close(descriptor);
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    error_code ignored;
    const auto at = acceptor_.local_endpoint(ignored); // the configuration may say port 0
    warn_rarely(config::host_port{settings_->config.address.host, at.port()}.text() +
                ": out of file descriptors; new clients are refused or wait: raise the limit (ulimit -n)");
}

} // namespace headgate
