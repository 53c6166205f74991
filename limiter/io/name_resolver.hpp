// Names to addresses, away from the workers: getaddrinfo blocks for as long as the name servers take to answer. One
// thread a resolver, started by the first question; questions are answered in their order.
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
        std::string error;                               // why there are none
    };

    name_resolver();
    // Does not wait for the name servers: what they say later is dropped.
    ~name_resolver();
    name_resolver(const name_resolver&) = delete;
    name_resolver& operator=(const name_resolver&) = delete;

    // `receive` is called once, on the resolver's thread, and must be short; never after the resolver has gone.
    void ask(std::string host, std::function<void(answer)> receive);

private:
    struct state;
    static void run(const std::shared_ptr<state>& shared);
    std::shared_ptr<state> state_;
};

} // namespace headgate
