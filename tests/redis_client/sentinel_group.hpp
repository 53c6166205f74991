// A primary, its replicas and three sentinels, all real, with their own ports and folders.
#pragma once

#include "limiter/redis/client/sentinel.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate::testing {

// Sends one command over a new connection and waits; returns the flattened reply: "master 120 ...", empty without a
// reply.
std::string ask_server(const redis_server& server, const std::vector<std::string>& words);
std::string ask_port(int port, const std::vector<std::string>& words);

class sentinel_group
{
public:
    static constexpr const char* master_name = "main";

    // Starts the servers and waits until they are ready for a failover. Throws when that takes too long. `later`: see
    // start_sentinels.
    explicit sentinel_group(std::size_t replicas, redis_server::when sentinels = redis_server::when::now);

    void start_sentinels();
    // Returns links to the master that the sentinels name.
    std::shared_ptr<redis::sentinel_master> source(client_loop& in, std::chrono::microseconds timeout,
                                                   std::chrono::milliseconds check_interval = std::chrono::seconds{
                                                       1}) const;
    // Returns the port of the replica that reports to be the master; 0 when none does.
    int promoted() const;
    // Returns the port that all sentinels name; 0 when they do not agree.
    int named_by_all() const;

    redis_server primary;
    std::vector<std::unique_ptr<redis_server>> replicas, sentinels;

private:
    void wait_for(const char* what, const std::function<bool()>& is_so) const;
};

} // namespace headgate::testing
