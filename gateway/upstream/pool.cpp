#include "gateway/upstream/pool.hpp"

#include <algorithm>

namespace headgate::http {

template <class Item>
void upstream_pool::push_back(std::vector<Item>& items, list& to, std::uint32_t id)
{
    items[id].next = nothing;
    items[id].previous = to.last;
    (to.last == nothing ? to.first : items[to.last].next) = id;
    to.last = id;
}

template <class Item>
void upstream_pool::unlink(std::vector<Item>& items, list& from, std::uint32_t id)
{
    const auto next = items[id].next, previous = items[id].previous;
    (previous == nothing ? from.first : items[previous].next) = next;
    (next == nothing ? from.last : items[next].previous) = previous;
}

upstream_pool::upstream_pool(std::uint32_t servers, const pool_limits& limits) : limits_(limits), servers_(servers) {}

upstream_pool::ticket upstream_pool::checkout(clock_time now, std::uint32_t avoid)
{
    // Who comes later does not overtake who waits.
    const auto server = waiting_ == 0 ? choose_server(now, avoid) : nothing;
    return server == nothing ? enqueue() : take_from(server);
}

// The next server in turn that has an idle connection or room for a new one. Resting servers and `avoid` come last, in
// that order of preference: a request is better tried on a doubtful server than refused.
std::uint32_t upstream_pool::choose_server(clock_time now, std::uint32_t avoid)
{
    const auto count = static_cast<std::uint32_t>(servers_.size());
    auto best = nothing;
    unsigned best_rank = 3;
    for (std::uint32_t i = 0; i < count && best_rank != 0; ++i) {
        const auto index = turn_ + i < count ? turn_ + i : turn_ + i - count;
        const auto& candidate = servers_[index];
        if (candidate.idle.first == nothing && candidate.open >= limits_.connections)
            continue;
        const unsigned rank = index == avoid ? 2 : candidate.rests_until > now ? 1 : 0;
        if (rank < best_rank) {
            best = index;
            best_rank = rank;
        }
    }
    if (best != nothing)
        turn_ = best + 1 < count ? best + 1 : 0;
    return best;
}

upstream_pool::ticket upstream_pool::take_from(std::uint32_t server)
{
    const auto youngest = servers_[server].idle.last;
    if (youngest == nothing)
        return {action::open_new, server, new_connection(server), nothing};
    leave_idle(youngest);
    connections_[youngest].in_use = true;
    return {action::use_idle, server, youngest, nothing};
}

upstream_pool::ticket upstream_pool::enqueue()
{
    if (waiting_ >= limits_.waiting || servers_.empty())
        return {};
    waiter_id id;
    if (free_waiters_.empty()) {
        id = static_cast<waiter_id>(waiters_.size());
        waiters_.emplace_back();
        free_waiters_.reserve(waiters_.capacity()); // so that giving it back never allocates
    } else {
        id = free_waiters_.back();
        free_waiters_.pop_back();
    }
    waiters_[id].queued = true;
    push_back(waiters_, queue_, id);
    ++waiting_;
    return {action::wait, nothing, nothing, id};
}

upstream_pool::waiter_id upstream_pool::dequeue()
{
    const auto id = queue_.first;
    if (id != nothing)
        cancel_wait(id);
    return id;
}

void upstream_pool::cancel_wait(waiter_id id)
{
    if (id >= waiters_.size() || !waiters_[id].queued)
        return;
    waiters_[id].queued = false;
    unlink(waiters_, queue_, id);
    free_waiters_.push_back(id);
    --waiting_;
}

upstream_pool::ticket upstream_pool::serve_waiter(clock_time now)
{
    if (waiting_ == 0)
        return {action::wait, nothing, nothing, nothing};
    const auto server = choose_server(now, nothing);
    if (server == nothing)
        return {action::wait, nothing, nothing, nothing};
    auto taken = take_from(server);
    taken.waiter = dequeue();
    return taken;
}

upstream_pool::ticket upstream_pool::give_back(connection_id id, clock_time now)
{
    auto& given = connections_[id];
    if (waiting_ != 0)
        return {action::use_idle, given.server, id, dequeue()};
    given.in_use = false;
    given.is_idle = true;
    given.idle_since = now;
    push_back(connections_, servers_[given.server].idle, id);
    ++idle_;
    return {action::wait, nothing, nothing, nothing};
}

upstream_pool::ticket upstream_pool::discard(connection_id id, clock_time now)
{
    release(id);
    return serve_waiter(now);
}

void upstream_pool::connected(connection_id id)
{
    auto& reached = servers_[connections_[id].server];
    reached.failures = 0;
    reached.rests_until = {};
}

upstream_pool::ticket upstream_pool::connect_failed(connection_id id, clock_time now)
{
    auto& failed = servers_[connections_[id].server];
    if (++failed.failures >= limits_.failures_to_rest)
        failed.rests_until = now + limits_.rest_time;
    return discard(id, now);
}

bool upstream_pool::drop_idle(connection_id id)
{
    if (id >= connections_.size() || !connections_[id].is_idle)
        return false;
    leave_idle(id);
    release(id);
    return true;
}

upstream_pool::connection_id upstream_pool::expire(clock_time now)
{
    if (idle_ == 0)
        return nothing;
    for (const auto& each : servers_) {
        const auto oldest = each.idle.first;
        if (oldest != nothing && connections_[oldest].idle_since + limits_.idle_timeout <= now) {
            drop_idle(oldest);
            return oldest;
        }
    }
    return nothing;
}

upstream_pool::connection_id upstream_pool::new_connection(std::uint32_t server)
{
    connection_id id;
    if (free_connections_.empty()) {
        id = static_cast<connection_id>(connections_.size());
        connections_.emplace_back();
        free_connections_.reserve(connections_.capacity());
    } else {
        id = free_connections_.back();
        free_connections_.pop_back();
    }
    connections_[id] = {};
    connections_[id].server = server;
    connections_[id].in_use = true;
    ++servers_[server].open;
    ++open_;
    return id;
}

void upstream_pool::release(connection_id id)
{
    --servers_[connections_[id].server].open;
    --open_;
    connections_[id].in_use = false;
    free_connections_.push_back(id);
}

void upstream_pool::leave_idle(connection_id id)
{
    unlink(connections_, servers_[connections_[id].server].idle, id);
    connections_[id].is_idle = false;
    --idle_;
}

bool may_retry(const failed_attempt& attempt) noexcept
{
    if (attempt.retries != 0 || attempt.response_bytes_received != 0)
        return false;
    // Nothing of it can have been executed: this is another server's turn rather than a second try.
    if (!attempt.connected)
        return attempt.body_replayable;
    // The server closed an idle connection as we took it. POST and PATCH are left out even so: whether a byte was sent
    // is something only the kernel knows.
    if (attempt.reused_connection && attempt.request_bytes_sent == 0)
        return attempt.body_replayable && attempt.method != method_id::post && attempt.method != method_id::patch;
    return is_idempotent(attempt.method) && attempt.body_replayable;
}

} // namespace headgate::http
