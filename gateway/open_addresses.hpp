// The addresses at which the gateway listens. A reload plans the change first, which opens the new addresses and can
// fail; adopting the plan cannot. The workers open their sockets of new addresses before they close those of removed
// ones.
#pragma once

#include "gateway/client/listener.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headgate {

struct open_address
{
    config::host_port configured; // port 0: any
    config::host_port actual;
    std::shared_ptr<connection_caps> caps;
};

struct listening_plan
{
    std::vector<open_address> addresses;                 // in the order of the file
    std::vector<std::vector<wanted_listener>> of_worker; // by the worker's number, then in the order of the file
};

class open_addresses
{
public:
    // Opens the addresses that are not open yet, with a socket per worker; `beside` are other addresses at which this
    // process listens. Throws std::system_error when one cannot be bound; then everything is as before.
    listening_plan plan(const std::vector<config::listener_config>& wanted, std::size_t workers,
                        std::vector<config::host_port> beside = {}) const;
    void adopt(listening_plan& plan);

    const std::vector<open_address>& all() const { return open_; }
    std::vector<config::host_port> actual() const;

private:
    std::vector<open_address> open_;
};

// Returns whether both are spellings of one address and port.
bool same_address(const config::host_port& a, const config::host_port& b);

} // namespace headgate
