// The source of a store's links: one server, the master that Sentinel names, or the masters of a cluster, each of which
// has a part of the keys.
#pragma once

#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/client/link.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

// The link to the server that has a key. Valid until the next suspension: after it, the link may be gone.
struct route
{
    link* to = nullptr;
    std::uint64_t number = 0; // a new one for each link that is made
    bool asking = false;      // ASKING goes directly before the command
};

class link_source
{
public:
    virtual ~link_source() = default;

    // Returns whether keys are on several servers, by their slot. Otherwise the slot of a key does not matter.
    bool spreads_keys() const { return spreads_keys_; }

    virtual void begin() = 0;
    virtual void stop() = 0;
    // `ready` with a non-empty why(): with a restriction, such as that only some servers are ready.
    virtual link::state now() const = 0;
    virtual const std::string& why() const = 0; // why it is not ready

    // Returns the link to the server of this slot. Never null; its server may be unreachable.
    virtual route route_to(std::uint16_t slot) = 0;
    // The server of `way` has refused the command with `error` and run nothing. Returns whether to repeat the command,
    // over `way` as it is then. Waits for another server until `deadline` at most.
    virtual task<bool> reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline) = 0;
    // Returns links to all servers that have keys.
    virtual std::vector<std::shared_ptr<link>> servers() const = 0;
    // Returns the sums over all links so far.
    virtual link::counters seen() const = 0;
    // Waits, or returns at once when the source is stopped or has a single server.
    virtual task<void> pause(std::chrono::microseconds) { co_return; }

protected:
    explicit link_source(bool spreads_keys = false) : spreads_keys_(spreads_keys) {}

private:
    const bool spreads_keys_;
};

// Returns whether the error means that the server is not, or not now, a master that takes writes. It has run nothing.
inline bool is_wrong_server(error_class error)
{
    return error == error_class::read_only || error == error_class::master_down || error == error_class::loading;
}

// A single server.
class single_link final : public link_source
{
public:
    explicit single_link(std::shared_ptr<link> to) : link_(std::move(to)) {}

    void begin() override { link_->begin(); }
    void stop() override { link_->stop(); }
    link::state now() const override { return link_->now(); }
    const std::string& why() const override { return link_->why(); }
    route route_to(std::uint16_t) override { return {link_.get(), 1, false}; }
    task<bool> reroute(route&, std::uint16_t, std::string, steady_time) override { co_return false; }
    std::vector<std::shared_ptr<link>> servers() const override { return {link_}; }
    link::counters seen() const override { return link_->seen(); }

private:
    std::shared_ptr<link> link_;
};

} // namespace headgate::limiter::redis
