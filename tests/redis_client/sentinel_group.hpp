// A primary, its replicas and three sentinels, all real, on ports and in folders of their own.
#pragma once

#include "limiter/redis/client/sentinel.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate::testing {

// One command over a connection of its own, waiting; the reply flattened: "master 120 ...". Empty: no answer.
std::string ask_server(const redis_server& server, const std::vector<std::string>& words);
std::string ask_port(int port, const std::vector<std::string>& words);

class sentinel_group
{
public:
    static constexpr const char* master_name = "main";

    // Ready for a failover when it returns. Throws when that takes too long. `later`: see start_sentinels.
    explicit sentinel_group(std::size_t replicas, redis_server::when sentinels = redis_server::when::now);

    void start_sentinels();
    // Links to the master that the sentinels name.
    std::shared_ptr<redis::sentinel_master> source(client_loop& in, std::chrono::microseconds timeout,
                                                   std::chrono::milliseconds check_interval = std::chrono::seconds{
                                                       1}) const;
    // Which port is master, by its own account; 0: none of the replicas.
    int promoted() const;
    // Which port all sentinels name; 0: they do not agree.
    int named_by_all() const;

    redis_server primary;
    std::vector<std::unique_ptr<redis_server>> replicas, sentinels;

private:
    void wait_for(const char* what, const std::function<bool()>& is_so) const;
};

} // namespace headgate::testing
