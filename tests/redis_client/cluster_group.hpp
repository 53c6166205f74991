// A Redis Cluster of real servers: masters with the slots spread over them, replicas, ports and folders of their own.
#pragma once

#include "limiter/redis/client/cluster.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate::testing {

// Where a key of a group is.
std::uint16_t slot_of_key(const std::string& group, const std::string& key);

class cluster_group
{
public:
    // Ready when it returns: every node knows every other, all slots are served, replicas follow. Throws when that
    // takes too long. The i-th replica is the i-th master's.
    explicit cluster_group(std::size_t masters = 3, std::size_t replicas = 0, std::vector<std::string> options = {},
                           redis_server::speaks on_port = redis_server::speaks::plain_text);

    redis::cluster_options client_options(std::chrono::microseconds timeout) const;
    std::shared_ptr<redis::cluster_links> source(client_loop& in, std::chrono::microseconds timeout) const;

    // Which of the nodes serves the slot, unless that was changed.
    std::size_t first_master_of(std::uint16_t slot) const;
    // The nth key of a group that is there.
    std::string key_on(std::size_t node, const std::string& group, int nth = 0) const;
    std::string id_of(std::size_t node) const;
    // The steps of a live reshard, as redis-cli makes them: the slot is on its way, its keys are moved, it has moved.
    void begin_move(std::uint16_t slot, std::size_t from, std::size_t to) const;
    void move_keys(std::uint16_t slot, std::size_t from, std::size_t to, int most = 1'000'000) const;
    void end_move(std::uint16_t slot, std::size_t from, std::size_t to) const;

    bool is_whole() const; // by the account of every node that runs
    static void wait_for(const char* what, const std::function<bool()>& is_so);

    std::vector<std::unique_ptr<redis_server>> nodes; // masters first

private:
    void join(std::size_t masters) const;
    const std::size_t masters_;
};

} // namespace headgate::testing
