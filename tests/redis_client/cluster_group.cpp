#include "tests/redis_client/cluster_group.hpp"

#include "tests/redis_client/sentinel_group.hpp"

#include <stdexcept>
#include <thread>

namespace headgate::testing {

using namespace std::chrono_literals;

cluster_group::cluster_group(std::size_t masters, std::size_t replicas, std::vector<std::string> options,
                             redis_server::speaks on_port)
    : masters_(masters)
{
    options.insert(options.end(),
                   {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000",
                    "--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"});
    for (std::size_t i = 0; i < masters + replicas; ++i)
        nodes.push_back(std::make_unique<redis_server>(options, on_port)); // the second port of a node is 10000 above
    join(masters);
}

void cluster_group::join(std::size_t masters) const
{
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        ask_server(*nodes[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
        if (i < masters)
            ask_server(*nodes[i], {"CLUSTER", "ADDSLOTSRANGE", std::to_string(redis::slot_count * i / masters),
                                   std::to_string(redis::slot_count * (i + 1) / masters - 1)});
        for (std::size_t j = 0; j < i; ++j)
            ask_server(*nodes[i], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes[j]->port())});
    }
    const auto all_nodes = "cluster_known_nodes:" + std::to_string(nodes.size());
    for (const auto& each : nodes)
        wait_for("the nodes do not know each other", [&] {
            return ask_server(*each, {"CLUSTER", "INFO"}).find(all_nodes) != std::string::npos;
        });
    for (std::size_t i = masters; i < nodes.size(); ++i) {
        wait_for("a node will not be a replica", [&] {
            return ask_server(*nodes[i], {"CLUSTER", "REPLICATE", id_of(i - masters)}) == "OK";
        });
        wait_for("a replica does not follow",
                 [&] { return ask_server(*nodes[i], {"ROLE"}).find("connected") != std::string::npos; });
    }
    wait_for("the cluster does not become whole", [&] { return is_whole(); });
}

bool cluster_group::is_whole() const
{
    for (const auto& each : nodes) {
        if (each->pid() > 0 && ask_server(*each, {"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos)
            return false;
    }
    return true;
}

redis::cluster_options cluster_group::client_options(std::chrono::microseconds timeout) const
{
    redis::cluster_options options;
    options.node.timeout = timeout;
    for (const auto& each : nodes)
        options.seeds.push_back({"127.0.0.1", static_cast<std::uint16_t>(each->port())});
    return options;
}

std::shared_ptr<redis::cluster_links> cluster_group::source(client_loop& in, std::chrono::microseconds timeout) const
{
    return std::make_shared<redis::cluster_links>(in.events, in.names, client_options(timeout), in.keep_told());
}

std::size_t cluster_group::first_master_of(std::uint16_t slot) const
{
    std::size_t i = 0;
    while (slot >= redis::slot_count * (i + 1) / masters_)
        ++i;
    return i;
}

std::string cluster_group::key_on(std::size_t node, const std::string& group, int nth) const
{
    for (int i = 0;; ++i) {
        auto key = "k" + std::to_string(i);
        if (first_master_of(slot_of_key(group, key)) == node && nth-- == 0)
            return key;
    }
}

std::uint16_t slot_of_key(const std::string& group, const std::string& key)
{
    std::string name;
    redis::append_key(name, group, key);
    return redis::slot_of(name);
}

std::string cluster_group::id_of(std::size_t node) const { return ask_server(*nodes[node], {"CLUSTER", "MYID"}); }

void cluster_group::begin_move(std::uint16_t slot, std::size_t from, std::size_t to) const
{
    const auto number = std::to_string(slot);
    ask_server(*nodes[to], {"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)});
    ask_server(*nodes[from], {"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(to)});
}

void cluster_group::move_keys(std::uint16_t slot, std::size_t from, std::size_t to, int most) const
{
    for (int moved = 0; moved < most;) {
        const auto keys = ask_server(*nodes[from], {"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "1"});
        if (keys.empty())
            return;
        const auto result =
            ask_server(*nodes[from], {"MIGRATE", "127.0.0.1", std::to_string(nodes[to]->port()), keys, "0", "5000"});
        if (result != "OK" && result != "NOKEY")
            throw std::runtime_error("MIGRATE: " + result);
        ++moved;
    }
}

void cluster_group::end_move(std::uint16_t slot, std::size_t from, std::size_t to) const
{
    const auto id = id_of(to);
    for (const auto node : {to, from})
        ask_server(*nodes[node], {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
}

void cluster_group::wait_for(const char* what, const std::function<bool()>& is_so)
{
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > end)
            throw std::runtime_error(what);
        std::this_thread::sleep_for(10ms);
    }
}

} // namespace headgate::testing
