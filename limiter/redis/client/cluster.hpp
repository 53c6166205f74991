// A Redis Cluster, and one worker's links to its masters. The map of the slots comes from the nodes (CLUSTER SLOTS):
// from the seeds at first, later from any master, one at a time. It is read again when a node answers MOVED or
// CLUSTERDOWN, when a link breaks or rests, every quarter of a second while something is wrong, and every ten seconds
// in any case; never by a request, and never twice at the same time. A request that meets MOVED or ASK follows it
// within its timeout.
//
// The Redis user needs the commands CLUSTER SLOTS and ASKING besides those for a single server.
#pragma once

#include "limiter/io/event_loop.hpp"
#include "limiter/redis/client/link_source.hpp"
#include "limiter/redis/client/slots.hpp"

#include <optional>
#include <vector>

namespace headgate::limiter::redis {

struct cluster_options
{
    std::vector<server_address> seeds;
    link_options node; // login, TLS and timeouts of every link; host and port come from the cluster
};

class cluster_links final : public link_source, public std::enable_shared_from_this<cluster_links>
{
public:
    struct counters
    {
        std::uint64_t rounds = 0, maps = 0, moved = 0, ask = 0; // moved, ask: redirections
    };

    // REQUIRES: made by std::make_shared, because its coroutines share ownership.
    cluster_links(event_loop& loop, name_resolver& names, cluster_options options, link::listener on_change = {});

    void begin() override;
    void stop() override;
    // ready: some masters can be reached; with a reason why(), not all of them.
    link::state now() const override { return state_; }
    const std::string& why() const override { return why_; }
    route route_to(std::uint16_t slot) override;
    task<bool> reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline) override;
    std::vector<std::shared_ptr<link>> servers() const override;
    link::counters seen() const override;
    task<void> pause(std::chrono::microseconds time) override;

    const counters& rounds() const { return seen_; }
    const slot_map& map() const { return map_; }

private:
    struct node
    {
        server_address at;
        std::shared_ptr<link> to;
        std::uint64_t number = 0;
        steady_time last_used{}; // of a node without slots
        std::string trouble;     // why it is not ready
    };
    using node_list = std::vector<std::shared_ptr<node>>;

    std::shared_ptr<node> node_at(const server_address& at);
    std::shared_ptr<node> node_of(std::uint64_t number) const;
    void drop(node& gone);
    void on_node(std::uint64_t number, link::state now, std::string_view why);
    void refresh_soon();
    void wake_all();
    void update_state();
    void become(link::state next, std::string why);
    bool is_stopped() const { return state_ == link::state::stopped; }
    bool is_whole() const;
    task<bool> until_ready(std::shared_ptr<node> wanted, steady_time deadline);
    task<void> wait(steady_time until);

    // The search (cluster_map.cpp).
    task<void> watch(std::shared_ptr<cluster_links> keep);
    task<void> nap(steady_time until);
    task<bool> refresh();
    task<bool> ask_any(node_list of);
    task<bool> ask_seeds();
    task<bool> ask_for_map(std::shared_ptr<node> from);
    void adopt(slot_map next);
    void drop_unused();
    std::chrono::microseconds spread(std::chrono::microseconds time);

    event_loop& loop_;
    name_resolver& names_;
    const cluster_options options_;
    link::listener on_change_;

    slot_map map_;
    node_list masters_; // in the order of map_.masters()
    node_list others_;  // without slots in the map: seeds, and nodes that a redirection named
    std::shared_ptr<link> unreachable_;
    std::uint64_t links_made_ = 0;
    link::counters former_; // of links that were closed

    link::state state_ = link::state::connecting;
    std::string why_;
    std::string trouble_;        // of the last round
    bool is_due_ = false;        // another round is due
    std::size_t next_node_ = 0;  // nodes take turns, so that the error of one does not last
    unsigned failed_rounds_ = 0; // in a row
    steady_time last_round_{};
    steady_timer wake_;
    std::vector<steady_timer*> waiting_;
    counters seen_;
    std::uint64_t random_;
};

} // namespace headgate::limiter::redis
