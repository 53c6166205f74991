// Connections to one upstream, of one worker: the sockets around http::upstream_pool, which decides. A request checks a
// connection out, talks, and gives it back or discards it. Everything happens on the worker's thread.
#pragma once

#include "config/model.hpp"
#include "gateway/buffer_pool.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/upstream/pool.hpp"
#include "gateway/upstream/server_addresses.hpp"
#include "limiter/io/reactor.hpp"
#include "limiter/io/socket_deadline.hpp"
#include "limiter/io/task.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

class session;
class worker;

// One connection. May be read and written at once, by one coroutine each.
class upstream_connection
{
public:
    upstream_connection(reactor& in, http::upstream_pool::connection_id id, std::uint32_t server)
        : socket_(in), reading_(socket_), writing_(socket_), id_(id), server_(server)
    {}

    tcp_socket& socket() { return socket_; }
    http::upstream_pool::connection_id id() const { return id_; }
    std::uint32_t server() const { return server_; }

    // Sends all; `within` bounds each wait for room.
    auto send(std::string_view first, std::string_view second, deadline_list& within)
    {
        return at_once_or_later(sending{*this, first, second, within});
    }
    // co_await link.read(...): appends what comes. Waits without a buffer: one is taken from `spare` when there is
    // something to read. No error and no bytes: ask again. The error is operation_aborted and read_timed_out() is set
    // when the time is over.
    auto read(http::byte_buffer& into, buffer_pool& spare, deadline_list& within)
    {
        return reading(*this, into, spare, within);
    }
    // The same into an empty pipe: something, or the error.
    task<error_code> read(kernel_pipe& into, std::size_t most, deadline_list& within);
    // May be tried again with another address.
    task<error_code> connect(const asio::ip::tcp::endpoint& to, deadline_list& within);
    bool read_timed_out() const { return reading_.expired(); }
    bool write_timed_out() const { return writing_.expired(); }
    // Ends whatever it waits for, and whatever it would wait for later: the exchange is over, it will be discarded.
    void cancel();
    // Nothing came on an idle connection and it is still open (D5).
    bool is_quiet();

private:
    struct sending
    {
        upstream_connection& to;
        std::string_view first, second;
        deadline_list& within;
        std::optional<bool> now()
        {
            if (!to.socket_.send_now(first, second))
                return false;
            return first.empty() && second.empty() ? std::optional(true) : std::nullopt;
        }
        task<bool> later() { return to.send_rest(first, second, within); }
    };
    task<bool> send_rest(std::string_view first, std::string_view second, deadline_list& within);

    class reading final : private read_ahead
    {
    public:
        reading(upstream_connection& from, http::byte_buffer& into, buffer_pool& spare, deadline_list& within)
            : from_(from), into_(into), spare_(spare), within_(within), wait_(from.socket_.until_readable(this))
        {}
        reading(const reading&) = delete;
        bool await_ready() { return !from_.begin_read(within_) || wait_.await_ready(); }
        void await_suspend(std::coroutine_handle<> waiting) { wait_.await_suspend(waiting); }
        error_code await_resume() { return from_.end_read(wait_.await_resume(), error_); }

    private:
        std::size_t on_readable() override { return from_.read_now(into_, spare_, error_); }

        upstream_connection& from_;
        http::byte_buffer& into_;
        buffer_pool& spare_;
        deadline_list& within_;
        decltype(std::declval<tcp_socket&>().until_readable()) wait_;
        error_code error_; // of the read
    };
    bool begin_read(deadline_list& within);
    std::size_t read_now(http::byte_buffer& into, buffer_pool& spare, error_code& error);
    error_code end_read(const io_result& ready, const error_code& error);

    tcp_socket socket_;
    socket_deadline reading_, writing_;
    http::upstream_pool::connection_id id_;
    std::uint32_t server_;
    bool cancelled_ = false;
};

class upstream
{
public:
    // Begins to look the servers' names up.
    upstream(worker& owner, std::string name, const config::upstream_config& config);
    ~upstream();

    const std::string& name() const { return name_; }
    const config::upstream_config& config() const { return config_; }
    deadline_list& connect_timeout() { return *connect_timeout_; }
    deadline_list& first_byte_timeout() { return *first_byte_timeout_; }
    deadline_list& idle_timeout() { return *idle_timeout_; }
    deadline_list& tunnel_timeout() { return *tunnel_timeout_; }

    struct ticket
    {
        upstream_connection* connection = nullptr; // null: `error` says why
        http::http_error error = http::http_error::none;
        bool reused = false;
        bool at_once = false; // nothing had to be waited for
    };
    // May wait for a place, for as long as a connection may take, and not for a client that has gone. `avoid`: the
    // server this request just failed on.
    auto checkout(session& client, std::uint32_t avoid = http::upstream_pool::nothing)
    {
        return at_once_or_later(checking_out{*this, client, avoid, {}});
    }
    void give_back(upstream_connection& connection);
    void discard(upstream_connection& connection);
    std::string_view server_name(std::uint32_t server) const { return server_names_[server]; }

    // The worker stops: who waits for a connection, or on one, is woken with an error, and there are no new ones.
    void stop();

    // Closes connections that have been idle for too long. Called by the worker's tick.
    void expire_idle();
    const http::upstream_pool& states() const { return pool_; }

private:
    class turn;

    struct checking_out
    {
        upstream& from;
        session& client;
        std::uint32_t avoid;
        http::upstream_pool::ticket got;
        std::optional<ticket> now() { return from.checkout_idle(avoid, got); }
        task<ticket> later() { return from.go_on(client, avoid, got); }
    };
    // An idle connection, when the pool has one that is sound; else `got` is what the pool gave instead.
    std::optional<ticket> checkout_idle(std::uint32_t avoid, http::upstream_pool::ticket& got);
    task<ticket> go_on(session& client, std::uint32_t avoid, http::upstream_pool::ticket got);

    upstream_connection& connection(http::upstream_pool::connection_id id) { return *connections_[id]; }
    task<ticket> use(session& client, http::upstream_pool::ticket got);
    task<http::http_error> open(session& client, http::upstream_pool::ticket got);
    void pass_on(const http::upstream_pool::ticket& next);
    void close(http::upstream_pool::connection_id id);

    worker& worker_;
    std::string name_;
    config::upstream_config config_;
    std::vector<std::shared_ptr<server_addresses>> addresses_; // by server
    std::vector<std::string> server_names_;
    http::upstream_pool pool_;
    std::vector<std::unique_ptr<upstream_connection>> connections_; // by id
    std::vector<turn*> turns_;                                      // by waiter id
    bool stopped_ = false;
    deadline_list* connect_timeout_;
    deadline_list* first_byte_timeout_;
    deadline_list* idle_timeout_;
    deadline_list* tunnel_timeout_; // a WebSocket may be silent for much longer than an answer
};

} // namespace headgate
