// The asynchronous client under the contract tests: one event loop, which runs until each call is answered.
#pragma once

#include "limiter/redis/client/sentinel.hpp"
#include "limiter/redis/store.hpp"
#include "tests/contract/limiter_under_test.hpp"
#include "tests/support/redis_server.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace headgate::testing {

namespace redis = headgate::limiter::redis;

class client_loop;
// Makes the link source of a client, on its loop.
using link_maker = std::function<std::shared_ptr<redis::link_source>(client_loop&)>;

// An event loop with links on it.
class client_loop
{
public:
    explicit client_loop(const link_maker& make);
    explicit client_loop(redis::link_options options); // makes one link, which is also `link`
    ~client_loop();

    // Returns a listener that keeps the reasons of links and their sources in `messages`.
    redis::link::listener keep_told()
    {
        return [this](redis::link::state, std::string_view why) { messages.emplace_back(why); };
    }
    bool is_ready() const { return links->now() == redis::link::state::ready; }

    // Runs the loop until the task has ended. Returns false when that takes longer than half a minute.
    bool run(task<void> work);
    // The same, until `done` returns true.
    bool run_until(const std::function<bool()>& done, std::chrono::milliseconds within = std::chrono::seconds{30});
    // Sends one command and returns the reply as text: "-ERR ...", ":1", "text", or "(timeout)". On a cluster it is
    // sent to the node of the key, and redirections are followed.
    std::string ask(std::vector<std::string> words, std::string_view key = {});
    void ask_all(const std::vector<std::string>& words);

    event_loop events;
    name_resolver names;
    std::vector<std::string> messages; // the reasons that the link reported
    std::shared_ptr<redis::link> link; // if there is only one
    std::shared_ptr<redis::link_source> links;
};

redis::link_options options_for(const redis_server& server);
redis_server& shared_server();

class client_under_test : public limiter_under_test
{
public:
    explicit client_under_test(const link_maker& make);

    void define(const std::string& group, std::vector<rule> rules, time_point now) override;
    answer take(const chain& wanted, time_point now) override { return ask_for(wanted, now, false); }
    answer look(const chain& wanted, time_point now) override { return ask_for(wanted, now, true); }
    void give_back(const chain& wanted, time_point charged_at, time_point now) override;
    answer reserve(const chain& wanted, time_point now, reservation& id) override;
    bool settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now) override;
    std::uint64_t grant(const std::string& group, const std::string& key, std::uint64_t n, time_point now) override;
    bool reset(const std::string& group, const std::string& key, time_point now) override;
    bool block(const std::string& group, const std::string& key, time_point until, time_point now) override;
    bool unblock(const std::string& group, const std::string& key, time_point now) override;
    std::optional<key_report> inspect(const std::string& group, const std::string& key, time_point now) override;
    std::vector<key_report> list(const std::string& group, const std::string& prefix, time_point now) override;

private:
    struct defined
    {
        group_lineage lineage;
        std::unique_ptr<rule_group> rules;
    };
    struct held
    {
        chain wanted;
        std::vector<std::shared_ptr<defined>> under;
        time_point charged_at;
    };

    answer ask_for(const chain& wanted, time_point now, bool look);
    void correct(const ask& wanted, const defined& under, const std::vector<std::uint64_t>& actual,
                 time_point charged_at, time_point now);
    void set_clock(const std::string& group, const std::string& key, time_point now);
    // Runs one verb; throws when it fails.
    void must(task<redis::trouble> call);

    std::recursive_mutex one_at_a_time_; // the loop has one thread; store_test.cpp tests simultaneous clients
    client_loop loop_;
    redis::script take_, take_each_, correct_;
    redis::store store_;
    std::map<std::string, std::shared_ptr<defined>> groups_;
    std::vector<std::shared_ptr<defined>> former_; // the groups of earlier reservations
    std::map<reservation, held> reservations_;
    reservation last_reservation_ = 0;
};

} // namespace headgate::testing
