// Where a store gets the links it asks over: one server's, that of whoever is the master now, or those of a cluster's
// masters, each of which has a part of the keys.
#pragma once

#include "limiter/redis/client/error_class.hpp"
#include "limiter/redis/client/link.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

// Whom to ask about a key, until the next suspension: after it, the link may be gone.
struct route
{
    link* to = nullptr;
    std::uint64_t number = 0; // another for each link that there has been
    bool asking = false;      // ASKING goes directly before the command
};

class link_source
{
public:
    virtual ~link_source() = default;

    // Keys are on several servers, by their slot. Otherwise every slot is on the same one, and nobody need know it.
    bool spreads_keys() const { return spreads_keys_; }

    virtual void begin() = 0;
    virtual void stop() = 0;
    // ready with a reason why(): only some keys can be asked about.
    virtual link::state now() const = 0;
    virtual const std::string& why() const = 0; // it is not ready

    // Always somebody, who may be unreachable.
    virtual route route_to(std::uint16_t slot) = 0;
    // Whom `way` led to has refused the command and run nothing. True: ask again, by `way` as it is now. Waits for
    // that until `deadline` at the most.
    virtual task<bool> reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline) = 0;
    // All that have keys.
    virtual std::vector<std::shared_ptr<link>> servers() const = 0;
    // Of all links so far.
    virtual link::counters seen() const = 0;
    // At once when it is stopped, or where nobody has to.
    virtual task<void> pause(std::chrono::microseconds) { co_return; }

protected:
    explicit link_source(bool spreads_keys = false) : spreads_keys_(spreads_keys) {}

private:
    const bool spreads_keys_;
};

// What a server says that is not, or not now, a master that takes writes. Nothing was run.
inline bool is_wrong_server(error_class said)
{
    return said == error_class::read_only || said == error_class::master_down || said == error_class::loading;
}

// One server, whatever it says.
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
