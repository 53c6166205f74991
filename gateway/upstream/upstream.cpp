#include "gateway/upstream/upstream.hpp"

#include "gateway/request/session.hpp"
#include "gateway/request/watch_client.hpp"
#include "gateway/worker.hpp"

#include <cerrno>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace headgate {

namespace {

using http::http_error;
using pool = http::upstream_pool;

http::pool_limits limits_of(const config::upstream_config& config)
{
    return {.connections = static_cast<std::uint32_t>(config.max_connections),
            .waiting = static_cast<std::uint32_t>(config.max_pending),
            .idle_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(config.pool.idle_timeout)};
}

} // namespace

// ---- one connection

void upstream_connection::cancel()
{
    cancelled_ = true; // nobody may be waiting yet
    socket_.cancel();
}

bool upstream_connection::is_quiet()
{
    if (!socket_.may_be_readable())
        return true; // the last read emptied it, and the kernel has announced nothing since (decision 0004)
    char byte;
    const auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        return false;
    socket_.exhausted();
    return true;
}

task<bool> upstream_connection::send_rest(std::string_view first, std::string_view second, deadline_list& within)
{
    while (!first.empty() || !second.empty()) {
        if (cancelled_)
            co_return false;
        writing_.arm(within);
        const auto ready = co_await socket_.until_writable();
        writing_.disarm();
        if (ready.error || !socket_.send_now(first, second))
            co_return false;
    }
    co_return true;
}

bool upstream_connection::begin_read(deadline_list& within)
{
    if (cancelled_)
        return false;
    reading_.arm(within);
    return true;
}

std::size_t upstream_connection::read_now(http::byte_buffer& into, buffer_pool& spare, error_code& error)
{
    if (into.capacity() == 0)
        into = spare.take();
    const auto got = socket_.read_now(into.prepare(buffer_pool::size), buffer_pool::size);
    if (!got)
        return 0;
    into.commit(got->bytes);
    error = got->error;
    return got->bytes;
}

error_code upstream_connection::end_read(const io_result& ready, const error_code& error)
{
    reading_.disarm();
    if (cancelled_)
        return asio::error::operation_aborted;
    return ready.error ? ready.error : error;
}

task<error_code> upstream_connection::read(kernel_pipe& into, std::size_t most, deadline_list& within)
{
    while (begin_read(within)) {
        const auto ready = co_await socket_.until_readable();
        const auto got = ready.error ? ready : socket_.read_now(into, most).value_or(io_result{});
        const auto error = end_read(ready, got.error);
        if (error || got.bytes > 0)
            co_return error;
    }
    co_return asio::error::operation_aborted;
}

task<error_code> upstream_connection::connect(const asio::ip::tcp::endpoint& to, deadline_list& within)
{
    const auto last_error = [] { return error_code(errno, boost::system::system_category()); };
    const int fd = ::socket(to.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        co_return last_error();
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const bool made = ::connect(fd, to.data(), static_cast<socklen_t>(to.size())) == 0;
    if (!made && errno != EINPROGRESS) {
        const auto error = last_error();
        ::close(fd);
        co_return error;
    }
    socket_.close(); // of the address before
    if (!socket_.adopt_connecting(fd))
        co_return last_error();
    if (made)
        co_return error_code{};
    writing_.arm(within);
    const auto done = co_await socket_.until_writable();
    writing_.disarm();
    if (done.error)
        co_return done.error;
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    co_return error_code(failure, boost::system::system_category());
}

// ---- the pool

upstream::upstream(worker& owner, std::string name, const config::upstream_config& config)
    : worker_(owner), name_(std::move(name)), config_(config),
      pool_(static_cast<std::uint32_t>(config.servers.size()), limits_of(config))
{
    for (const auto& server : config.servers) {
        addresses_.push_back(std::make_shared<server_addresses>(owner, server));
        addresses_.back()->refresh();
        server_names_.push_back(server.text());
    }
    auto& lists = owner.timeouts();
    connect_timeout_ = &lists.list_for(config.timeouts.connect);
    first_byte_timeout_ = &lists.list_for(config.timeouts.first_byte);
    idle_timeout_ = &lists.list_for(config.timeouts.idle);
    tunnel_timeout_ = &lists.list_for(std::chrono::hours{1});
}

upstream::~upstream() = default;

// Suspends a request until the pool has a place for it, its time is over, or nobody wants it any more.
class upstream::turn final : private deadline
{
public:
    turn(upstream& in, pool::waiter_id id) : in_(in), id_(id) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting)
    {
        waiting_ = waiting;
        if (in_.turns_.size() <= id_)
            in_.turns_.resize(id_ + 1);
        in_.turns_[id_] = this;
        in_.connect_timeout_->arm(*this, in_.worker_.sockets().turn_began());
    }
    // `refuse`: it came to nothing.
    pool::ticket await_resume() const noexcept { return got_; }

    // The pool has already taken it out of its queue. Goes on from the event loop, so that nobody is resumed inside
    // somebody else's step.
    void come(const pool::ticket& got)
    {
        got_ = got;
        disarm();
        in_.turns_[id_] = nullptr;
        in_.worker_.sockets().resume_later(waiting_);
    }
    // Gives the place in the queue up; too late when the turn has come.
    void cancel()
    {
        if (in_.turns_[id_] != this)
            return;
        in_.pool_.cancel_wait(id_);
        come({});
    }

private:
    void on_deadline() override { cancel(); }

    upstream& in_;
    pool::waiter_id id_;
    std::coroutine_handle<> waiting_;
    pool::ticket got_;
};

std::optional<upstream::ticket> upstream::checkout_idle(std::uint32_t avoid, pool::ticket& got)
{
    if (stopped_)
        return ticket{.error = http_error::upstream_busy};
    got = pool_.checkout(worker_.sockets().turn_began(), avoid);
    if (got.what != pool::action::use_idle || !connection(got.connection).is_quiet())
        return std::nullopt;
    return ticket{.connection = &connection(got.connection), .reused = true, .at_once = true};
}

task<upstream::ticket> upstream::go_on(session& client, std::uint32_t avoid, pool::ticket got)
{
    const auto began = std::chrono::steady_clock::now();
    for (;;) {
        if (got.what == pool::action::wait) {
            turn mine(*this, got.waiter);
            watch_client watch(client, mine);
            got = co_await mine;
            if (got.what == pool::action::refuse && watch.client_is_gone())
                co_return ticket{.error = http_error::client_gone};
        }
        if (stopped_ || got.what == pool::action::refuse)
            co_return ticket{.error = http_error::upstream_busy};
        const auto used = co_await use(client, got);
        if (used.connection || used.error != http_error::none)
            co_return used;
        // The idle one had gone stale: back to the queue, unless that has taken its time already.
        const auto now = std::chrono::steady_clock::now();
        if (now - began >= connect_timeout_->after())
            co_return ticket{.error = http_error::upstream_busy};
        got = pool_.checkout(now, avoid);
    }
}

task<upstream::ticket> upstream::use(session& client, pool::ticket got)
{
    if (got.what == pool::action::use_idle) {
        auto& idle = connection(got.connection);
        if (idle.is_quiet())
            co_return ticket{.connection = &idle, .reused = true};
        discard(idle);
        co_return ticket{};
    }
    if (connections_.size() <= got.connection)
        connections_.resize(got.connection + 1);
    const auto error = co_await open(client, got);
    if (error == http_error::none) {
        pool_.connected(got.connection);
        co_return ticket{.connection = &connection(got.connection)};
    }
    close(got.connection);
    const auto now = std::chrono::steady_clock::now();
    pass_on(error == http_error::client_gone ? pool_.discard(got.connection, now)
                                             : pool_.connect_failed(got.connection, now));
    co_return ticket{.error = error};
}

// Addresses that refuse hand on to the server's next one. One that does not answer has used the time up.
task<http_error> upstream::open(session& client, pool::ticket got)
{
    auto& addresses = *addresses_[got.server];
    const auto unknown = co_await addresses.until_known(client, *connect_timeout_);
    if (unknown != http_error::none)
        co_return unknown;
    if (stopped_)
        co_return http_error::upstream_busy;
    auto& opened = *(connections_[got.connection] =
                         std::make_unique<upstream_connection>(worker_.sockets(), got.connection, got.server));
    for (auto left = addresses.count(); left > 0 && !stopped_; --left) {
        const auto to = addresses.next();
        const auto error = co_await opened.connect(to, *connect_timeout_);
        if (!error)
            co_return http_error::none;
        addresses.refresh(); // it may have moved
        if (opened.write_timed_out())
            co_return http_error::upstream_connect_timeout;
    }
    co_return http_error::upstream_refused;
}

void upstream::give_back(upstream_connection& connection)
{
    if (pool_.waiting() == 0 && pool_.idle_connections() >= config_.pool.size)
        return discard(connection);
    pass_on(pool_.give_back(connection.id(), worker_.sockets().turn_began()));
}

void upstream::discard(upstream_connection& connection)
{
    const auto id = connection.id();
    close(id);
    pass_on(pool_.discard(id, std::chrono::steady_clock::now()));
}

void upstream::close(pool::connection_id id) { connections_[id].reset(); }

// Hands a freed place to who waits longest.
void upstream::pass_on(const pool::ticket& next)
{
    if (next.what != pool::action::use_idle && next.what != pool::action::open_new)
        return;
    turns_[next.waiter]->come(next);
}

void upstream::expire_idle()
{
    const auto now = std::chrono::steady_clock::now();
    for (auto id = pool_.expire(now); id != pool::nothing; id = pool_.expire(now))
        close(id);
}

void upstream::stop()
{
    if (std::exchange(stopped_, true))
        return;
    for (auto& open : connections_) {
        if (open)
            open->socket().close();
    }
    for (auto& each : addresses_)
        each->stop();
    for (auto* waiting : turns_) {
        if (waiting)
            waiting->cancel();
    }
}

} // namespace headgate
