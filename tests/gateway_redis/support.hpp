// Gateways that share a redis-server.
#pragma once

#include "tests/admin/support.hpp"
#include "tests/support/redis_server.hpp"

#include <string>

namespace headgate::tests {

using testing::redis_server;

struct shared_setup
{
    std::string rules; // of the chain `api`, whose store is `shared`
    std::string store_options = "timeout: 5s, on_outage: open";
    std::string upstream = "up: { echo: true }";
    std::string more = "";          // further top-level lines
    std::string chains = "[ api ]"; // of the one route
    std::string login = "";         // user:password@
    unsigned workers = 2;
    std::string log = "off"; // the path of the access log
};
std::string configuration(const redis_server& server, const shared_setup& how);
std::string configuration(const std::string& url, const shared_setup& how);

// Waits until every worker's connection is open.
bool wait_until_connected(running_gateway& gateway);

struct tally
{
    int passed = 0, refused = 0, other = 0;
    std::chrono::microseconds longest{0}; // from a request to its answer
    tally& operator+=(const tally& more);
};
// Sends `n` requests with one API key, over one connection, one after the other.
tally ask_for(const running_gateway& gateway, int n, const std::string& key);

} // namespace headgate::tests
