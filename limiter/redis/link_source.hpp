// Where a store gets the link it asks over: one server's, or that of whoever is the master now.
#pragma once

#include "limiter/redis/error_class.hpp"
#include "limiter/redis/link.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace headgate::limiter::redis {

class link_source
{
public:
    virtual ~link_source() = default;

    virtual void begin() = 0;
    virtual void stop() = 0;
    virtual link::state now() const = 0;
    virtual const std::string& why() const = 0; // it is not ready

    // Whom to ask. Always somebody, who may be unreachable; after a suspension it may be another, and this one gone.
    virtual link& current() = 0;
    // Another number for each link that `current` has been.
    virtual std::uint64_t generation() const = 0;
    // The current link answered what a master that can be written to does not.
    virtual void suspect(error_class said) = 0;
    // Waits while another link than the one of that generation is being looked for, until `deadline` at most. True:
    // there is one, and it is ready.
    virtual task<bool> until_another(std::uint64_t than, steady_time deadline) = 0;
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
    link& current() override { return *link_; }
    std::uint64_t generation() const override { return 1; }
    void suspect(error_class) override {}
    task<bool> until_another(std::uint64_t, steady_time) override { co_return false; }

private:
    std::shared_ptr<link> link_;
};

} // namespace headgate::limiter::redis
