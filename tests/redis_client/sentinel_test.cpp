// The master behind Sentinel: found, lost, and found again, with real servers and real sentinels.
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

struct one_rule
{
    one_rule(std::string name, std::uint64_t an_hour)
    {
        rule r;
        r.name = "hour";
        r.kind = algorithm::fixed_window;
        r.count = an_hour;
        r.period = 1h;
        r.align = window_align::first;
        lineage.name = std::move(name);
        rules = std::make_unique<rule_group>(lineage, 0, std::vector<rule>{std::move(r)});
    }
    group_lineage lineage;
    std::unique_ptr<rule_group> rules;
};

// A store over Sentinel, and what a take of it said.
struct client
{
    struct outcome
    {
        redis::trouble trouble = redis::trouble::confused;
        bool admitted = false;
        decision said;
    };

    explicit client(const sentinel_group& group, std::chrono::microseconds timeout = 5s)
        : loop([&](client_loop& in) { return master = group.source(in, timeout); }), store(master, {7, 60s})
    {}
    bool becomes_ready()
    {
        const bool is = loop.run_until([&] { return loop.is_ready(); }, 10s);
        CHECK_MESSAGE(is, "no master: ", master->why());
        return is;
    }
    task<outcome> take(const rule_group& by, std::string_view key)
    {
        const part asked{&by, key, {}};
        std::array<decision, max_rules_a_group> said;
        verdict v;
        outcome out;
        out.trouble = co_await store.take({&asked, 1}, said, v);
        out.admitted = out.trouble == redis::trouble::none && v.admitted;
        out.said = said[0];
        co_return out;
    }
    outcome take_now(const rule_group& by, std::string_view key)
    {
        outcome out;
        const auto once = [](client& self, const rule_group& rules, std::string_view who, outcome& to) -> task<void> {
            to = co_await self.take(rules, who);
        };
        CHECK(loop.run(once(*this, by, key, out)));
        return out;
    }
    int port() { return master->current().options().port; }

    std::shared_ptr<redis::sentinel_master> master;
    client_loop loop;
    redis::store store;
};

double ms(steady::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

} // namespace

TEST_CASE("redis sentinel: an announcement is read word by word, and only for our master")
{
    const auto to = redis::parse_switch("main 10.0.0.1 6379 10.0.0.2 6380", "main");
    REQUIRE(to);
    CHECK(to->text() == "10.0.0.2:6380");
    for (const auto* other : {"other 10.0.0.1 6379 10.0.0.2 6380", "main 10.0.0.1 6379 10.0.0.2", "main", "",
                              "main 10.0.0.1 6379 10.0.0.2 0", "main 10.0.0.1 6379 10.0.0.2 70000",
                              "main 10.0.0.1 6379 10.0.0.2 6380 more", "main 10.0.0.1 6379 10.0.0.2 63x"}) {
        CAPTURE(other);
        CHECK(!redis::parse_switch(other, "main"));
    }
}

TEST_CASE("redis sentinel: the master is found, takes pass, and an announced switch is followed at once")
{
    sentinel_group group(2);
    const one_rule ten("api/user", 10);
    client c(group);
    REQUIRE(c.becomes_ready());
    CHECK(c.port() == group.primary.port());
    for (int i = 0; i < 12; ++i) {
        const auto got = c.take_now(*ten.rules, "one");
        CHECK(got.trouble == redis::trouble::none);
        CHECK(got.admitted == (i < 10));
    }
    CHECK(c.loop.ask({"WAIT", "2", "4000"}) == ":2");
    REQUIRE(ask_server(*group.sentinels[1], {"SENTINEL", "FAILOVER", sentinel_group::master_name}) == "OK");
    CHECK_MESSAGE(c.loop.run_until([&] { return c.port() != group.primary.port() && c.loop.is_ready(); }, 15s),
                  "no switch: ", c.master->why());
    CHECK(c.port() == group.promoted());
    const auto got = c.take_now(*ten.rules, "one");
    CHECK(got.trouble == redis::trouble::none);
    CHECK(!got.admitted); // what was used is still used
    CHECK(c.loop.run_until([&] { return c.master->seen().announced > 0; }, 10s));
    MESSAGE("rounds ", c.master->seen().rounds, ", switches ", c.master->seen().switches, ", announced ",
            c.master->seen().announced);
    CHECK(c.master->seen().switches == 2);
}

namespace {

// Asks for one key over and over, and keeps what it was told.
struct asker
{
    explicit asker(int number)
        : limit(static_cast<std::uint64_t>(2000 + 7 * number)), rule("group" + std::to_string(number), limit)
    {}
    std::uint64_t limit; // no two the same: a verdict shows whose it is
    one_rule rule;
    std::uint64_t before = 0, after = 0; // admitted, by the first master and by the next
    std::uint64_t lost = 0;              // writes that the next one did not know of
    std::uint64_t foreign = 0;           // verdicts that cannot be this key's
    bool is_refused = false;             // at the limit
    bool has_ended = false;
};

struct load
{
    explicit load(client& c) : by(c), first(c.master->generation())
    {
        for (int i = 0; i < 16; ++i)
            askers.push_back(std::make_unique<asker>(i));
    }
    void begin()
    {
        by.loop.sockets.begin_turn();
        for (auto& each : askers)
            headgate::start(run(*each));
    }
    task<void> run(asker& a)
    {
        steady_timer pause(by.loop.io.get_executor());
        while (!is_over && !a.is_refused) {
            const auto got = co_await by.take(*a.rule.rules, "one");
            note(a, got);
            if (got.trouble == redis::trouble::none)
                continue;
            pause.expires_after(2ms);
            co_await until_expired(pause);
            by.loop.sockets.begin_turn();
        }
        a.has_ended = true;
    }
    void note(asker& a, const client::outcome& got)
    {
        if (got.trouble != redis::trouble::none) {
            ++troubles[static_cast<std::size_t>(got.trouble)];
            return;
        }
        a.foreign += got.said.limit != a.limit || got.said.remaining > a.limit ? 1 : 0;
        a.is_refused = !got.admitted;
        if (by.master->generation() == first) {
            a.before += got.admitted ? 1 : 0;
            return;
        }
        if (first_success == steady::time_point{})
            first_success = steady::now();
        const auto used = a.limit - got.said.remaining - (got.admitted ? 1 : 0);
        if (a.after == 0 && used < a.before)
            a.lost = a.before - used;
        a.after += got.admitted ? 1 : 0;
    }
    bool has_ended() const
    {
        return std::all_of(askers.begin(), askers.end(), [](const auto& each) { return each->has_ended; });
    }

    client& by;
    const std::uint64_t first;
    std::vector<std::unique_ptr<asker>> askers;
    std::array<std::uint64_t, 8> troubles{};
    steady::time_point first_success{};
    bool is_over = false;
};

// Kills the primary, whatever the loop is doing; and when a replica says for the first time that it is the master now.
struct failover_clock
{
    explicit failover_clock(sentinel_group& group)
        : thread([this, &group] {
              killed = steady::now();
              group.primary.stop();
              while (!is_over && group.promoted() == 0)
                  std::this_thread::sleep_for(5ms);
              promoted = steady::now();
          })
    {}
    ~failover_clock()
    {
        is_over = true;
        thread.join();
    }
    std::atomic<bool> is_over{false};
    std::atomic<steady::time_point> killed{}, promoted{};
    std::thread thread;
};

void report(const load& l, steady::time_point killed, steady::time_point promoted)
{
    std::uint64_t before = 0, after = 0, lost = 0, limit = 0;
    for (const auto& each : l.askers) {
        before += each->before;
        after += each->after;
        lost += each->lost;
        limit += each->limit;
    }
    std::string troubles;
    for (std::size_t i = 1; i < l.troubles.size(); ++i)
        troubles += " " + std::string(name_of(static_cast<redis::trouble>(i))) + " " + std::to_string(l.troubles[i]);
    MESSAGE("kill to promotion ", ms(promoted - killed), " ms, promotion to the first success ",
            ms(l.first_success - promoted), " ms; admitted before ", before, ", after ", after, ", limits ", limit,
            ", writes lost ", lost, "; troubles:", troubles);
}

} // namespace

TEST_CASE("redis sentinel: the primary killed under load: the next one goes on, nothing is admitted twice")
{
    sentinel_group group(2);
    client c(group, 200ms);
    REQUIRE(c.becomes_ready());
    load l(c);
    l.begin();
    REQUIRE(c.loop.run_until(
        [&] { return std::all_of(l.askers.begin(), l.askers.end(), [](auto& a) { return a->before >= 500; }); }, 10s));
    failover_clock clock(group);
    const bool is_done = c.loop.run_until([&] { return l.has_ended(); }, 18s);
    l.is_over = true;
    CHECK_MESSAGE(is_done, "not all limits were reached again: ", c.master->why());
    CHECK(c.loop.run_until([&] { return l.has_ended(); }, 2s));
    REQUIRE(l.first_success != steady::time_point{});
    const auto promoted = clock.promoted.load();
    report(l, clock.killed, promoted);
    CHECK(l.first_success - promoted < 3s);
    CHECK(c.port() == group.promoted());
    for (const auto& each : l.askers) {
        CAPTURE(each->limit);
        CHECK(each->foreign == 0);
        CHECK(each->before + each->after <= each->limit + each->lost);
    }
}

TEST_CASE("redis sentinel: a primary that became a replica is never a yes; whoever is master next is")
{
    sentinel_group group(2);
    const one_rule many("api/user", 1'000'000);
    client c(group, 200ms);
    REQUIRE(c.becomes_ready());
    CHECK(c.take_now(*many.rules, "one").admitted);
    REQUIRE(ask_server(group.primary, {"REPLICAOF", "127.0.0.1", "1"}) == "OK");
    int yes = 0, read_only = 0;
    const auto began = steady::now();
    while (c.port() == group.primary.port() && steady::now() - began < 15s) {
        const auto got = c.take_now(*many.rules, "one");
        yes += got.admitted && c.port() == group.primary.port() ? 1 : 0;
        read_only += c.store.last_error() == redis::error_class::read_only ? 1 : 0;
        c.loop.run_until([] { return false; }, 5ms);
    }
    CHECK(yes == 0);
    CHECK(read_only > 0);
    CHECK(c.master->seen().suspicions > 0);
    CHECK_MESSAGE(c.port() != group.primary.port(), "no other master: ", c.master->why());
    MESSAGE("READONLY to another master: ", ms(steady::now() - began), " ms, ", read_only, " refused");
    REQUIRE(c.becomes_ready());
    CHECK(c.take_now(*many.rules, "one").admitted);
}

TEST_CASE("redis sentinel: a take that meets READONLY is asked of the next master, in its own time")
{
    sentinel_group group(0);
    redis_server next;
    const one_rule ten("api/user", 10);
    client c(group);
    REQUIRE(c.becomes_ready());
    const auto began = steady::now(); // what a server says is looked into only every 100 ms
    REQUIRE(c.loop.run_until([&] { return steady::now() - began > 300ms; }));
    for (const auto& each : group.sentinels) {
        REQUIRE(ask_server(*each, {"SENTINEL", "REMOVE", sentinel_group::master_name}) == "OK");
        REQUIRE(ask_server(*each, {"SENTINEL", "MONITOR", sentinel_group::master_name, "127.0.0.1",
                                   std::to_string(next.port()), "2"}) == "OK");
    }
    REQUIRE(ask_server(group.primary, {"REPLICAOF", "127.0.0.1", "1"}) == "OK");
    const auto got = c.take_now(*ten.rules, "one");
    CHECK(name_of(got.trouble) == "none");
    CHECK(got.admitted);
    CHECK(c.store.last_error() == redis::error_class::read_only);
    CHECK(c.port() == next.port());
}

TEST_CASE("redis sentinel: no sentinel is there at the start: waiting, with a reason, until they come")
{
    sentinel_group group(0, redis_server::when::later);
    const one_rule ten("api/user", 10);
    client c(group);
    CHECK(c.loop.run_until([&] { return c.master->now() == redis::link::state::waiting; }, 10s));
    CHECK_MESSAGE(c.master->why().find("no sentinel answers: 127.0.0.1:") == 0, c.master->why());
    CHECK_MESSAGE(c.master->why().find("Connection refused") != std::string::npos, c.master->why());
    CHECK(c.take_now(*ten.rules, "one").trouble == redis::trouble::unreachable);
    group.start_sentinels();
    REQUIRE(c.becomes_ready());
    CHECK(c.take_now(*ten.rules, "one").admitted);
}
