// The store with its client: what the contract tests do not cover, with the real scripts and Redis's own clock.
#include "tests/redis_client/client_under_test.hpp"

#include <doctest/doctest.h>

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;

namespace {

struct one_rule
{
    explicit one_rule(rule r)
    {
        lineage.name = "api/user";
        rules = std::make_unique<rule_group>(lineage, 0, std::vector<rule>{std::move(r)});
    }
    group_lineage lineage;
    std::unique_ptr<rule_group> rules;
};

struct client
{
    explicit client(const redis_server& server, std::uint64_t id = 7) : client(options_for(server), id) {}
    explicit client(const redis::link_options& options, std::uint64_t id = 7)
        : loop(options), store(loop.link, {id, 60s})
    {
        REQUIRE(loop.run_until([&] { return loop.link->now() == redis::link::state::ready; }));
    }
    // Starts n takes in one turn; returns how many were admitted.
    int take(const rule_group& rules, const std::string& key, int n)
    {
        int admitted = 0, ended = 0;
        const auto once = [](client& self, const rule_group& by, const std::string& of, int& good,
                             int& done) -> task<void> {
            const part wanted{&by, of, {}};
            std::array<decision, max_rules_per_group> decisions;
            verdict v;
            const auto trouble = co_await self.store.take({&wanted, 1}, decisions, v);
            good += trouble == redis::trouble::none && v.admitted ? 1 : 0;
            ++done;
        };
        for (int i = 0; i < n; ++i)
            spawn(loop.events.get_executor(), once(*this, rules, key, admitted, ended));
        CHECK(loop.run_until([&] { return ended == n; }));
        return admitted;
    }

    client_loop loop;
    redis::store store;
};

rule per_hour(std::uint64_t n)
{
    rule r;
    r.name = "hour";
    r.kind = algorithm::fixed_window;
    r.count = n;
    r.period = 1h;
    r.align = window_align::first;
    return r;
}

} // namespace

TEST_CASE("redis store: four clients at once, one key: exactly the limit passes")
{
    redis_server server;
    const one_rule hundred(per_hour(100));
    std::vector<std::unique_ptr<client>> clients;
    for (std::uint64_t i = 0; i < 4; ++i)
        clients.push_back(std::make_unique<client>(server, i + 1));
    std::atomic<int> admitted{0};
    std::vector<std::thread> threads;
    for (auto& c : clients)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i)
                admitted += c->take(*hundred.rules, "one", 250);
        });
    for (auto& t : threads)
        t.join();
    CHECK(admitted == 100);
}

TEST_CASE("redis store: a server without the scripts is given each text once, with any number of calls (M2)")
{
    redis_server server;
    const one_rule thousand(per_hour(1000));
    client c(server);
    CHECK(c.take(*thousand.rules, "one", 500) == 500);
    CHECK(c.store.seen().texts_sent == 1);
    CHECK(c.loop.ask({"SCRIPT", "FLUSH"}) == "OK");
    CHECK(c.take(*thousand.rules, "one", 600) == 500);
    CHECK(c.store.seen().texts_sent == 2);
}

TEST_CASE("redis store: the usual chains of a turn are sent in few calls, and each gets the decision of its key")
{
    redis_server server;
    const one_rule two(per_hour(2));
    client c(server);
    CHECK(c.take(*two.rules, "first", 1) == 1); // the server has the scripts now
    const auto before = c.loop.link->calls().sent;
    std::vector<int> admitted(100), remaining(100, -1);
    int ended = 0;
    const auto once = [](client& self, const rule_group& by, int i, int& good, int& left, int& done) -> task<void> {
        const auto key = "user " + std::to_string(i);
        const part wanted{&by, key, {}};
        std::array<decision, max_rules_per_group> decisions;
        verdict v;
        const auto trouble = co_await self.store.take({&wanted, 1}, decisions, v);
        good += trouble == redis::trouble::none && v.admitted ? 1 : 0;
        left = static_cast<int>(decisions[0].remaining);
        ++done;
    };
    for (int i = 0; i < 100; ++i) {
        // Every user once, every tenth three times: one too many.
        for (int n = 0; n < (i % 10 == 0 ? 3 : 1); ++n)
            spawn(c.loop.events.get_executor(), once(c, *two.rules, i, admitted[static_cast<std::size_t>(i)],
                                                     remaining[static_cast<std::size_t>(i)], ended));
    }
    CHECK(c.loop.run_until([&] { return ended == 120; }));
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK(admitted[i] == (i % 10 == 0 ? 2 : 1));
        CHECK(remaining[i] == (i % 10 == 0 ? 0 : 1));
    }
    CHECK(c.loop.link->calls().sent - before == 4); // of 32 keys at most
}

TEST_CASE("redis store: a call for many keys that is not answered counts for each of them")
{
    redis_server server;
    const one_rule ten(per_hour(10));
    auto options = options_for(server);
    options.timeout = std::chrono::milliseconds{50};
    options.failures_to_rest = 20;
    client c(options);
    CHECK(c.take(*ten.rules, "one", 1) == 1);
    server.pause();
    CHECK(c.take(*ten.rules, "one", 21) == 0);
    CHECK(c.loop.link->seen().timeouts == 21);
    CHECK(c.loop.link->now() == redis::link::state::resting);
    CHECK(c.take(*ten.rules, "one", 5) == 0); // at once, without a call
    CHECK(c.loop.link->seen().timeouts == 21);
    server.resume();
    CHECK(c.loop.run_until([&] { return c.loop.link->now() == redis::link::state::ready; }));
    CHECK(c.loop.link->seen().late_replies >= 21);
}

TEST_CASE("redis store: another limit keeps the amount used under the old one")
{
    redis_server server;
    const one_rule few(per_hour(10)), more(per_hour(25));
    {
        client before(server);
        CHECK(before.take(*few.rules, "one", 12) == 10);
    }
    client after(server); // another process, which does not have the old rules
    CHECK(after.take(*more.rules, "one", 40) == 15);
    CHECK(after.store.seen().conversions >= 1);
    CHECK(after.store.seen().lost_rules == 0);
}

TEST_CASE("redis store: a key with a foreign value neither admits nor refuses for ever")
{
    redis_server server;
    const one_rule ten(per_hour(10));
    client c(server);
    std::string key;
    redis::append_key(key, "api/user", "one");
    CHECK(c.loop.ask({"SET", key, "not ours"}) == "OK");
    CHECK(c.take(*ten.rules, "one", 12) == 10);
    CHECK(c.loop.ask({"DEL", key}) == ":1");
    CHECK(c.loop.ask({"LPUSH", key, "a"}) == ":1");
    CHECK(c.take(*ten.rules, "one", 12) == 10);
    CHECK(c.store.seen().foreign >= 2);
}

TEST_CASE("redis store: a server out of memory is a named outage, not a verdict")
{
    redis_server server({"--maxmemory", "2mb", "--maxmemory-policy", "noeviction"});
    const one_rule ten(per_hour(10));
    client c(server);
    CHECK(c.take(*ten.rules, "one", 1) == 1);
    CHECK(c.loop.ask({"CONFIG", "SET", "maxmemory", "1"}) == "OK");
    CHECK(c.take(*ten.rules, "two", 5) == 0);
    CHECK(c.store.last_error() == redis::error_class::out_of_memory);
    CHECK(c.loop.ask({"CONFIG", "SET", "maxmemory", "0"}) == "OK");
    CHECK(c.take(*ten.rules, "two", 12) == 10);
}

TEST_CASE("redis store: a replica is a named outage, and admits nothing")
{
    redis_server primary, replica;
    const one_rule ten(per_hour(10));
    client c(replica);
    CHECK(c.loop.ask({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}) == "OK");
    CHECK(c.take(*ten.rules, "one", 5) == 0);
    CHECK((c.store.last_error() == redis::error_class::read_only ||
           c.store.last_error() == redis::error_class::loading ||
           c.store.last_error() == redis::error_class::no_script));
}
