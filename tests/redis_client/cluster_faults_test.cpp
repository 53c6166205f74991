// Under load: a slot moves, a master is killed and its replica promoted; every verdict belongs to its key and comes in
// time.
#include "tests/redis_client/cluster_client.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

// Takes from one key again and again, and records the decisions.
struct asker
{
    asker(int number, std::uint64_t n, std::string whose)
        : limit(n), rule("group" + std::to_string(number), n), key(std::move(whose))
    {}
    std::uint64_t limit; // different for each key: it shows which key a verdict belongs to
    one_rule rule;
    std::string key;
    std::uint64_t admitted = 0, failed = 0, foreign = 0;
    std::uint64_t counted = 0; // the used amount in the last reply
    std::uint64_t lost = 0;    // writes that a promoted replica did not have
    steady::time_point last_failed{};
    bool is_refused = false; // at the limit
    bool has_ended = false;
};

struct load
{
    explicit load(cluster_client& c) : by(c) {}
    void begin()
    {
        for (auto& each : askers)
            headgate::spawn(by.loop.events.get_executor(), run(*each));
    }
    task<void> run(asker& a)
    {
        steady_timer pause(by.loop.events.get_executor());
        const std::vector<part> wanted(1, part{a.rule.rules.get(), a.key, {}}); // GCC 12 cannot await with a list
        while (!is_over && !a.is_refused) {
            const auto began = steady::now();
            const auto got = co_await by.take(wanted);
            longest = std::max(longest, steady::now() - began);
            note(a, got);
            pause.expires_after(got.trouble == redis::trouble::none ? 200us : 5ms);
            co_await pause.async_wait(as_result);
        }
        a.has_ended = true;
    }
    void note(asker& a, const cluster_client::outcome& got)
    {
        if (got.trouble != redis::trouble::none) {
            ++a.failed;
            a.last_failed = steady::now();
            ++troubles[static_cast<std::size_t>(got.trouble)];
            return;
        }
        const auto& decided = got.decisions.at(0);
        a.foreign += decided.limit != a.limit || decided.remaining > a.limit ? 1 : 0;
        a.is_refused = !got.admitted;
        a.admitted += got.admitted ? 1 : 0;
        const auto used = a.limit - decided.remaining - (got.admitted ? 1 : 0);
        if (used < a.counted)
            a.lost += a.counted - used;
        a.counted = a.limit - decided.remaining;
    }
    bool all_have(std::uint64_t n) const
    {
        return std::all_of(askers.begin(), askers.end(), [&](const auto& each) { return each->admitted >= n; });
    }
    bool has_ended() const
    {
        return std::all_of(askers.begin(), askers.end(), [](const auto& each) { return each->has_ended; });
    }
    std::string describe_troubles() const
    {
        std::string all;
        for (std::size_t i = 1; i < troubles.size(); ++i)
            all += " " + std::string(name_of(static_cast<redis::trouble>(i))) + " " + std::to_string(troubles[i]);
        return all;
    }

    cluster_client& by;
    std::vector<std::unique_ptr<asker>> askers;
    std::array<std::uint64_t, 8> troubles{};
    steady::duration longest{};
    bool is_over = false;
};

} // namespace

TEST_CASE("redis cluster: a slot moves under load: nothing is lost, and exactly the limits pass")
{
    cluster_group group;
    cluster_client c(group, 2s);
    REQUIRE(c.becomes_ready());
    load l(c);
    // All in the slot of the first: the keys of each group are tried until one is in it.
    const auto slot = slot_of_key("group0", group.key_on(0, "group0"));
    for (int i = 0; i < 8; ++i) {
        const auto name = "group" + std::to_string(i);
        int n = 0;
        while (slot_of_key(name, "s" + std::to_string(n)) != slot)
            ++n;
        l.askers.push_back(std::make_unique<asker>(i, static_cast<std::uint64_t>(700 + i), "s" + std::to_string(n)));
    }
    l.begin();
    REQUIRE(c.loop.run_until([&] { return l.all_have(50); }, 10s));
    std::atomic<bool> is_moved{false};
    std::thread reshard([&] {
        for (const auto& [from, to] : {std::pair{0u, 1u}, {1u, 2u}, {2u, 0u}}) {
            group.begin_move(slot, from, to);
            for (int i = 0; i < 8; ++i) {
                std::this_thread::sleep_for(5ms); // some keys are on the old node, some on the new one
                group.move_keys(slot, from, to, 1);
            }
            group.move_keys(slot, from, to);
            group.end_move(slot, from, to);
            std::this_thread::sleep_for(20ms);
        }
        is_moved = true;
    });
    const bool is_done = c.loop.run_until([&] { return l.has_ended() && is_moved; }, 40s);
    l.is_over = true;
    reshard.join();
    CHECK(is_done);
    MESSAGE("three moves under load: MOVED ", c.links->rounds().moved, ", ASK ", c.links->rounds().ask,
            ", longest answer ", ms(l.longest), " ms of 2000; troubles:", l.describe_troubles());
    CHECK(c.links->rounds().ask > 0);
    CHECK(c.links->rounds().moved > 0);
    for (const auto& each : l.askers) {
        CAPTURE(each->limit);
        CHECK(each->admitted == each->limit);
        CHECK(each->failed == 0);
        CHECK(each->foreign == 0);
        CHECK(each->lost == 0);
    }
}

TEST_CASE("redis cluster: a master killed under load: its replica takes over, no answer is late, limits hold again")
{
    cluster_group group(3, 3);
    constexpr auto timeout = 200ms;
    cluster_client c(group, timeout);
    REQUIRE(c.becomes_ready());
    load l(c);
    for (int i = 0; i < 12; ++i) {
        const auto name = "group" + std::to_string(i);
        l.askers.push_back(std::make_unique<asker>(i, static_cast<std::uint64_t>(1500 + 7 * i),
                                                   group.key_on(static_cast<std::size_t>(i % 3), name)));
    }
    l.begin();
    REQUIRE(c.loop.run_until([&] { return l.all_have(200); }, 20s));
    const auto gone = steady::now();
    group.nodes[1]->stop();
    const bool is_done = c.loop.run_until([&] { return l.has_ended(); }, 40s);
    l.is_over = true;
    CHECK_MESSAGE(is_done, "not all limits were reached again: ", c.links->why());
    CHECK(c.loop.run_until([&] { return l.has_ended(); }, 2s));
    CHECK(ask_server(*group.nodes[4], {"ROLE"}).starts_with("master"));
    CHECK(c.becomes_ready());
    steady::time_point last{};
    std::uint64_t lost = 0;
    for (const auto& each : l.askers) {
        CAPTURE(each->limit);
        CHECK(each->foreign == 0);
        CHECK(each->admitted <= each->limit + each->lost);
        lost += each->lost;
        last = std::max(last, each->last_failed);
    }
    MESSAGE("a master killed: decisions again after ", ms(last - gone), " ms, longest answer ", ms(l.longest),
            " ms of 200, writes lost ", lost, "; troubles:", l.describe_troubles());
    CHECK(l.longest < timeout + 800ms); // delays of a busy machine
    // The old master comes back as a replica of the new one; the client needs no second try for that.
    group.nodes[1]->start();
    cluster_group::wait_for("the old master is no replica",
                            [&] { return ask_server(*group.nodes[1], {"ROLE"}).starts_with("slave"); });
    const one_rule ten("after", 10);
    int passed = 0;
    for (int i = 0; i < 12; ++i)
        passed += c.take_now(ten, group.key_on(1, "after")).admitted ? 1 : 0;
    CHECK(passed == 10);
}
