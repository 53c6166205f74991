// A Redis Cluster of real servers: masters that share the slots, and replicas, with their own ports and folders.
#pragma once

#include "limiter/redis/client/cluster.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <memory>
#include <string>
#include <vector>

namespace headgate::testing {

// Returns the slot of a group's key.
std::uint16_t slot_of_key(const std::string& group, const std::string& key);

class cluster_group
{
public:
    // Starts the cluster and waits until every node knows every other, all slots are served, and replicas follow.
    // Throws when that takes too long. The i-th replica is that of the i-th master.
    explicit cluster_group(std::size_t masters = 3, std::size_t replicas = 0, std::vector<std::string> options = {},
                           redis_server::speaks on_port = redis_server::speaks::plain_text);

    redis::cluster_options client_options(std::chrono::microseconds timeout) const;
    std::shared_ptr<redis::cluster_links> source(client_loop& in, std::chrono::microseconds timeout) const;

    // Returns the node that serves the slot at the start.
    std::size_t first_master_of(std::uint16_t slot) const;
    // Returns the nth key of a group on that node.
    std::string key_on(std::size_t node, const std::string& group, int nth = 0) const;
    std::string id_of(std::size_t node) const;
    // The steps of a live reshard, as redis-cli makes them: the slot is migrating, its keys are moved, it has moved.
    void begin_move(std::uint16_t slot, std::size_t from, std::size_t to) const;
    void move_keys(std::uint16_t slot, std::size_t from, std::size_t to, int most = 1'000'000) const;
    void end_move(std::uint16_t slot, std::size_t from, std::size_t to) const;

    bool is_whole() const; // according to every running node
    static void wait_for(const char* what, const std::function<bool()>& is_so);

    std::vector<std::unique_ptr<redis_server>> nodes; // masters first

private:
    void join(std::size_t masters) const;
    const std::size_t masters_;
};

} // namespace headgate::testing
