// The master that Redis Sentinel names, and one worker's link to it. Every sentinel is queried. The server that most of
// them name is used once it confirms that it is a master (ROLE). The sentinels are queried again when one of them
// announces a switch, when the link breaks or rests, when the server's errors show that it is not a master, and every
// second in any case. A new master gets a new link; commands that are pending on the old one end with `broken`.
//
// The Redis user needs the command ROLE on the servers, and SENTINEL, SUBSCRIBE and PING on the sentinels.
#pragma once

#include "limiter/io/event_loop.hpp"
#include "limiter/redis/client/link_source.hpp"
#include "limiter/redis/client/server_address.hpp"

#include <optional>
#include <vector>

namespace headgate::limiter::redis {

struct sentinel_options
{
    std::vector<server_address> sentinels;
    std::string master;                             // its name in Sentinel
    link_options sentinel;                          // login and timeouts of the links to the sentinels
    link_options server;                            // of the link to the master; host and port come from Sentinel
    std::chrono::milliseconds check_interval{1000}; // between rounds
};

// Reads "name old-host old-port new-host new-port". Returns where the master of that name is now; nothing when the
// message is about another one.
std::optional<server_address> parse_switch(std::string_view message, std::string_view master);

class sentinel_master final : public link_source, public std::enable_shared_from_this<sentinel_master>
{
public:
    struct counters
    {
        std::uint64_t rounds = 0, switches = 0, announced = 0, suspicions = 0;
    };

    // REQUIRES: made by std::make_shared, because its coroutines share ownership.
    sentinel_master(event_loop& loop, name_resolver& names, sentinel_options options, link::listener on_change = {});

    void begin() override;
    void stop() override;
    // ready: the link is ready, and its server has confirmed that it is a master; with a reason why(), no sentinel
    // names it any more. waiting: no master was found; another try follows.
    link::state now() const override { return state_; }
    const std::string& why() const override { return why_; }
    route route_to(std::uint16_t) override { return {current_.get(), generation_, false}; }
    // Repeats the command on the next master when the server is no longer one; it has run nothing then.
    task<bool> reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline) override;
    std::vector<std::shared_ptr<link>> servers() const override { return {current_}; }
    link::counters seen() const override;

    link& current() { return *current_; }
    std::uint64_t generation() const { return generation_; } // of the current link
    const counters& rounds() const { return seen_; }

private:
    struct candidate
    {
        server_address at;
        int votes = 0;
    };

    static std::string address_of(const link& to);
    std::shared_ptr<link> link_to(link_options options, const server_address& to, link::listener on_change);
    void on_sentinel(std::size_t which, link::state now, std::string_view why);
    void on_server(std::uint64_t number, link::state now, std::string_view why);
    void on_published(std::string_view message);
    void suspect();
    task<bool> until_another(std::uint64_t than, steady_time deadline);
    void seek_soon();
    void wake_all();

    task<void> watch(std::shared_ptr<sentinel_master> keep);
    task<void> nap(steady_time until);
    task<bool> seek();
    task<void> ask_sentinels(std::vector<candidate>& out);
    task<void> ask_sentinel(std::size_t which, std::vector<candidate>& out);
    task<bool> is_kept();
    task<bool> try_server(server_address at);
    task<bool> try_new_link(server_address at);
    task<bool> is_master(std::shared_ptr<link> server);
    void keep_listening();
    void adopt(std::shared_ptr<link> server, std::uint64_t number);
    void become(link::state next, std::string_view why);
    bool is_stopped() const { return state_ == link::state::stopped; }

    event_loop& loop_;
    name_resolver& names_;
    const sentinel_options options_;
    link::listener on_change_;

    struct sentinel_link
    {
        std::shared_ptr<link> to;
        std::string why; // why it is not ready
    };
    std::vector<sentinel_link> sentinels_;
    std::shared_ptr<link> announcer_; // the subscription to one sentinel
    std::size_t announcing_ = 0;      // the number of that sentinel
    std::shared_ptr<link> current_;
    std::shared_ptr<link> tried_; // a server that may be the master
    std::uint64_t generation_ = 0, links_made_ = 0;

    link::state state_ = link::state::connecting;
    std::string why_;
    std::string trouble_;                     // of this round
    std::optional<server_address> announced_; // the new master; not tried yet
    bool is_seeking_ = false;                 // a round is under way, or about to be
    bool is_due_ = false;                     // another round is due at once
    unsigned failed_rounds_ = 0;              // in a row
    steady_time last_round_{};
    steady_timer wake_;
    std::vector<steady_timer*> waiting_; // of until_another
    counters seen_;
    link::counters former_; // of links that were closed
};

} // namespace headgate::limiter::redis
