// Resolves host names without blocking the event loop: getaddrinfo waits for name servers. One thread for the whole
// process runs Asio's resolver. It is never joined, so a name server that does not answer cannot delay the exit.
#pragma once

#include <boost/asio/ip/address.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace headgate {

class name_resolver
{
public:
    struct answer
    {
        std::vector<boost::asio::ip::address> addresses; // each once, in the system's order of preference
        std::string error;                               // the reason when there are none
    };

    name_resolver();
    // Does not wait for name servers: late answers are dropped.
    ~name_resolver();
    name_resolver(const name_resolver&) = delete;
    name_resolver& operator=(const name_resolver&) = delete;

    // Calls `receive` once, on the resolver's thread, unless the name_resolver is destroyed before. `receive` must be
    // short, must not throw, and must not call this object.
    void ask(std::string host, std::function<void(answer)> receive);

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace headgate
