// Connections to one upstream, of one worker: the sockets around http::upstream_pool, which decides. A request takes a
// connection, talks, and gives it back or discards it. Everything happens on the worker's thread.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/upstream/connection.hpp"
#include "gateway/upstream/pool.hpp"
#include "gateway/upstream/server_addresses.hpp"
#include "limiter/io/asio.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headgate {

class client;
class queued_request;
class worker;

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

    struct taken
    {
        upstream_connection* connection = nullptr; // null: `error` says why
        http::http_error error = http::http_error::none;
        std::string_view server; // that was tried; empty: none
        bool is_reused = false;
        bool waits = false; // no usable idle connection: pass `place` to take()
        http::upstream_pool::ticket place;
    };
    // Takes an idle connection, if there is one that is sound. `avoid`: the server this request has just failed on.
    taken take_idle(std::uint32_t avoid);
    // Opens one, or waits for a place, for as long as a connection may take, and not for a client that has gone.
    task<taken> take(client& from, std::uint32_t avoid, http::upstream_pool::ticket place);
    void give_back(upstream_connection& connection);
    void discard(upstream_connection& connection);
    std::string_view server_name(std::uint32_t server) const { return server_names_[server]; }

    // The worker stops: requests that wait for a connection, or on one, end with an error, and there are no new ones.
    void stop();

    // Closes connections that have been idle for too long. Called by the worker's tick.
    void expire_idle();
    const http::upstream_pool& states() const { return pool_; }

private:
    friend class queued_request;

    upstream_connection& connection(http::upstream_pool::connection_id id) { return *connections_[id]; }
    task<taken> use(client& from, http::upstream_pool::ticket place);
    task<http::http_error> open(client& from, http::upstream_pool::ticket place);
    void pass_on(const http::upstream_pool::ticket& next);
    void close(http::upstream_pool::connection_id id);

    worker& worker_;
    std::string name_;
    config::upstream_config config_;
    std::vector<std::shared_ptr<server_addresses>> addresses_; // by server
    std::vector<std::string> server_names_;
    http::upstream_pool pool_;
    std::vector<std::unique_ptr<upstream_connection>> connections_; // by id
    std::vector<queued_request*> queue_;                            // by waiter id
    bool is_stopped_ = false;
    deadline_list* connect_timeout_;
    deadline_list* first_byte_timeout_;
    deadline_list* idle_timeout_;
    deadline_list* tunnel_timeout_;
};

} // namespace headgate
