#include "gateway/upstream/upstream.hpp"

#include "gateway/client/client.hpp"
#include "gateway/client/client_watch.hpp"
#include "gateway/upstream/queued_request.hpp"
#include "gateway/worker.hpp"

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
    tunnel_timeout_ = &lists.list_for(config.timeouts.tunnel);
}

upstream::~upstream() = default;

upstream::taken upstream::take_idle(std::uint32_t avoid)
{
    if (is_stopped_)
        return {.error = http_error::upstream_busy};
    const auto place = pool_.checkout(worker_.loop().turn_began(), avoid);
    if (place.what != pool::action::use_idle || !connection(place.connection).is_quiet())
        return {.waits = true, .place = place};
    return {.connection = &connection(place.connection), .server = server_name(place.server), .is_reused = true};
}

task<upstream::taken> upstream::take(client& from, std::uint32_t avoid, pool::ticket place)
{
    const auto began = std::chrono::steady_clock::now();
    taken result;
    for (;;) {
        if (place.what == pool::action::wait) {
            queued_request mine(*this, place.waiter, worker_.loop());
            client_watch watch(from, mine);
            place = co_await mine.wait();
            if (place.what == pool::action::refuse && watch.client_is_gone()) {
                result.error = http_error::client_gone;
                co_return result;
            }
        }
        if (is_stopped_ || place.what == pool::action::refuse)
            break;
        result = co_await use(from, place);
        if (result.connection || result.error != http_error::none)
            co_return result;
        // The idle one had gone stale: back to the queue, unless that has taken its time already.
        const auto now = std::chrono::steady_clock::now();
        if (now - began >= connect_timeout_->after())
            break;
        place = pool_.checkout(now, avoid);
    }
    result.error = http_error::upstream_busy;
    co_return result;
}

// Returns neither a connection nor an error when the idle connection is not sound.
task<upstream::taken> upstream::use(client& from, pool::ticket place)
{
    taken result{.server = server_name(place.server)};
    if (place.what == pool::action::use_idle) {
        auto& idle = connection(place.connection);
        result.is_reused = idle.is_quiet();
        if (result.is_reused)
            result.connection = &idle;
        else
            discard(idle);
        co_return result;
    }
    if (connections_.size() <= place.connection)
        connections_.resize(place.connection + 1);
    result.error = co_await open(from, place);
    if (result.error == http_error::none) {
        pool_.connected(place.connection);
        result.connection = &connection(place.connection);
        co_return result;
    }
    close(place.connection);
    const auto now = std::chrono::steady_clock::now();
    pass_on(result.error == http_error::client_gone ? pool_.discard(place.connection, now)
                                                    : pool_.connect_failed(place.connection, now));
    co_return result;
}

// Tries the server's addresses one after the other. One that does not answer has used the time up.
task<http_error> upstream::open(client& from, pool::ticket place)
{
    auto& addresses = *addresses_[place.server];
    const auto unknown = co_await addresses.until_known(from, *connect_timeout_);
    if (unknown != http_error::none)
        co_return unknown;
    if (is_stopped_)
        co_return http_error::upstream_busy;
    auto& opened = *(connections_[place.connection] =
                         std::make_unique<upstream_connection>(worker_.loop(), place.connection, place.server));
    for (auto left = addresses.count(); left > 0 && !is_stopped_; --left) {
        const auto error = co_await opened.connect(addresses.next(), *connect_timeout_);
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
    pass_on(pool_.give_back(connection.id(), worker_.loop().turn_began()));
}

void upstream::discard(upstream_connection& connection)
{
    const auto id = connection.id();
    close(id);
    pass_on(pool_.discard(id, std::chrono::steady_clock::now()));
}

void upstream::close(pool::connection_id id) { connections_[id].reset(); }

// Hands a freed place to the request that has waited longest.
void upstream::pass_on(const pool::ticket& next)
{
    if (next.what == pool::action::use_idle || next.what == pool::action::open_new)
        queue_[next.waiter]->end(next);
}

void upstream::expire_idle()
{
    const auto now = std::chrono::steady_clock::now();
    for (auto id = pool_.expire(now); id != pool::nothing; id = pool_.expire(now))
        close(id);
}

void upstream::stop()
{
    if (std::exchange(is_stopped_, true))
        return;
    for (auto& open : connections_) {
        if (open)
            open->close();
    }
    for (auto& each : addresses_)
        each->stop();
    for (auto* waiting : queue_) {
        if (waiting)
            waiting->cancel();
    }
}

} // namespace headgate
