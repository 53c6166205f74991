// Chains over keys in several slots: reserve, then confirm or give back; and gateways that died in between.
#include "limiter/redis/client/command.hpp"
#include "tests/limiter/memory_under_test.hpp"
#include "tests/redis_client/cluster_client.hpp"

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;

namespace {

cluster_group& shared_cluster()
{
    static cluster_group group;
    return group;
}

// Returns a name that no other test uses.
std::string fresh_key(std::size_t node, const std::string& group)
{
    static int used = 0;
    return shared_cluster().key_on(node, group, used++);
}

// Makes the reservation of a gateway that died after the first step, which is never confirmed.
bool reserve_and_die(cluster_client& by, const one_rule& rule, const std::string& key, std::uint64_t cost,
                     microseconds lifetime)
{
    bool admitted = false;
    const auto once = [](cluster_client& c, const one_rule& with, const std::string& of_key, std::uint64_t n,
                         microseconds lives, bool& is) -> task<void> {
        const redis::detached_rules rules({with.rules->members()[0].limits.limits});
        std::string name;
        redis::append_key(name, with.lineage.name, of_key);
        const redis::chain_part part{&rules.packed(), name, {&n, 1}};
        const redis::take_options how{.owner = {99, 60s}, .reserve = {12'345, lives}};
        redis::caller calls(c.links);
        const auto write = [&](std::string& to, redis::call_by by_what) {
            redis::append_take(to, {&part, 1}, how, by_what);
        };
        redis::link::answer got;
        const auto failed = co_await calls.call(redis::slot_of(name), c.loop.events.turn_began(), write, got);
        CHECK(failed == redis::trouble::none);
        is = failed == redis::trouble::none && got.value().text().substr(0, 1) == "\1";
    };
    CHECK(by.loop.run(once(by, rule, key, cost, lifetime, admitted)));
    return admitted;
}

std::size_t bytes_of(cluster_client& c, const one_rule& rule, const std::string& key)
{
    std::string name;
    redis::append_key(name, rule.lineage.name, key);
    return c.loop.ask({"GET", name}, name).size();
}

constexpr std::size_t plain_bytes = 7 * 5; // a window and nothing else

} // namespace

TEST_CASE("redis cluster: a chain in three slots is charged in each when all admit, and in none when one refuses")
{
    cluster_client c(shared_cluster());
    REQUIRE(c.becomes_ready());
    const one_rule wide("chain/a", 100), middle("chain/b", 50), narrow("chain/c", 3);
    const std::string a = fresh_key(0, "chain/a"), b = fresh_key(1, "chain/b"), n = fresh_key(2, "chain/c");
    const std::vector<part> all{{wide.rules.get(), a, {}}, {middle.rules.get(), b, {}}, {narrow.rules.get(), n, {}}};
    for (int i = 0; i < 10; ++i) {
        const auto got = c.take_now(all);
        REQUIRE(got.trouble == redis::trouble::none);
        CHECK(got.admitted == (i < 3));
        CHECK(got.decisions.at(0).admitted);
        CHECK(got.decisions.at(2).admitted == (i < 3));
        CHECK(got.decisions.at(0).remaining == static_cast<std::uint64_t>(i < 3 ? 99 - i : 97));
        CHECK(got.decisions.at(1).remaining == static_cast<std::uint64_t>(i < 3 ? 49 - i : 47));
    }
    CHECK(c.left(wide, a) == 97);
    CHECK(c.left(middle, b) == 47);
    CHECK(c.left(narrow, n) == 0);
    CHECK(c.store.seen().split_chains == 10);
    CHECK(c.store.seen().lost_outcomes == 0);
    // Every reservation was confirmed or given back.
    CHECK(bytes_of(c, wide, a) == plain_bytes);
    CHECK(bytes_of(c, middle, b) == plain_bytes);
}

TEST_CASE("redis cluster: two clients at once: the sum is exact, and no key is charged for a refusal by another")
{
    cluster_client one(shared_cluster()), two(shared_cluster());
    REQUIRE(one.becomes_ready());
    REQUIRE(two.becomes_ready());
    const one_rule wide("chain/a", 1000), narrow("chain/c", 40);
    const std::string a = fresh_key(0, "chain/a"), n = fresh_key(2, "chain/c");
    const std::vector<part> both{{wide.rules.get(), a, {}}, {narrow.rules.get(), n, {}}};
    int admitted = 0, ended = 0, failed = 0;
    const auto run = [&](cluster_client& c) -> task<void> {
        for (int i = 0; i < 30; ++i) {
            const auto got = co_await c.take(both);
            admitted += got.admitted ? 1 : 0;
            failed += got.trouble != redis::trouble::none ? 1 : 0;
        }
        ++ended;
    };
    for (auto* each : {&one, &two}) {
        spawn(each->loop.events.get_executor(), run(*each));
        spawn(each->loop.events.get_executor(), run(*each));
    }
    CHECK(one.loop.run_until([&] {
        two.loop.events.turn(1ms);
        return ended == 4;
    }));
    CHECK(failed == 0);
    CHECK(admitted == 40);
    two.loop.run_until([] { return false; }, 20ms); // what it gives back has been sent
    CHECK(one.loop.run_until([&] { return one.left(wide, a) == 960; }, 5s));
    CHECK(one.left(narrow, n) == 0);
}

TEST_CASE("redis cluster: the reservation of a gateway that died counts for its lifetime, and then is given back")
{
    cluster_client c(shared_cluster());
    REQUIRE(c.becomes_ready());
    const one_rule five("chain/a", 5);
    const auto key = fresh_key(0, "chain/a");
    REQUIRE(reserve_and_die(c, five, key, 3, 300ms));
    CHECK(bytes_of(c, five, key) == plain_bytes + 7 * 6);
    const std::uint64_t three = 3;
    CHECK_FALSE(c.take_now({{five.rules.get(), key, {&three, 1}}}).admitted); // two remain
    CHECK(c.take_now(five, key).admitted);
    const auto began = std::chrono::steady_clock::now();
    c.loop.run_until([&] { return std::chrono::steady_clock::now() - began > 310ms; });
    CHECK(c.left(five, key) == 4); // an operator's look excludes the lapsed reservation, and changes nothing
    CHECK(c.store.seen().lapsed == 0);
    const auto got = c.take_now({{five.rules.get(), key, {&three, 1}}});
    CHECK(got.admitted);
    CHECK(got.decisions.at(0).remaining == 1);
    CHECK(c.store.seen().lapsed == 1);
    CHECK(bytes_of(c, five, key) == plain_bytes);
    CHECK(c.take_now(five, key).admitted);
    CHECK_FALSE(c.take_now(five, key).admitted); // never above the limit
}

TEST_CASE("redis cluster: a chain that cannot be decided in one of its slots charges nothing in the others")
{
    cluster_group group;
    cluster_client c(group, 200ms);
    REQUIRE(c.becomes_ready());
    const one_rule wide("chain/a", 100), narrow("chain/c", 30);
    const auto a = group.key_on(0, "chain/a"), n = group.key_on(2, "chain/c");
    const std::vector<part> both{{wide.rules.get(), a, {}}, {narrow.rules.get(), n, {}}};
    CHECK(c.take_now(both).admitted);
    group.nodes[2]->pause();
    const auto began = std::chrono::steady_clock::now();
    CHECK(c.take_now(both).trouble == redis::trouble::timeout);
    MESSAGE("one slot silent: the chain ended after ", ms(std::chrono::steady_clock::now() - began), " ms of 200");
    CHECK(c.loop.run_until([&] { return c.left(wide, a) == 99; }, 2s));
    group.nodes[2]->resume();
    // The reservation that it still made afterwards was given back directly after it.
    CHECK(c.loop.run_until([&] { return c.take_now(both).trouble == redis::trouble::none; }, 10s));
    CHECK(c.loop.run_until([&] { return c.left(narrow, n) == c.left(wide, a) - 70; }, 12s));
}

TEST_CASE("redis cluster: random chains over three slots are decided as in memory, field by field")
{
    std::mt19937 random(20'240'607);
    const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const auto any_rule = [&](const std::string& name) {
        const auto limit = static_cast<std::uint64_t>(1 + any(6));
        const microseconds period{1'000'000 * (1 + any(4))};
        rule r;
        switch (any(6)) {
        case 0:
            r = token_bucket(limit, period, limit);
            r.initial = any(2) == 0 ? r.initial : r.initial / 2;
            break;
        case 1:
            r = leaky_bucket(limit, period, limit);
            r.delay_after = 0;
            break;
        case 2:
            r = fixed_window(limit, period);
            break;
        case 3:
            r = sliding_window(limit, period);
            break;
        case 4:
            r = sliding_log(limit, period);
            break;
        default:
            r = window(algorithm::fixed_window, limit, period, window_align::first);
        }
        r.shadow = any(6) == 0;
        r.count_refused = any(5) == 0;
        return named(name, r);
    };
    const auto source = [](client_loop& in) { return shared_cluster().source(in, 30s); };
    int refused = 0, blocked = 0;
    for (int round = 0; round < 40; ++round) {
        client_under_test there(source);
        memory_under_test here;
        auto now = headgate::testing::start + 5h;
        for (const std::string group : {"x", "y", "z"}) {
            std::vector<rule> rules;
            for (int i = 0; i <= any(2); ++i)
                rules.push_back(any_rule("r" + std::to_string(i)));
            there.define(group, rules, now);
            here.define(group, rules, now);
        }
        for (int i = 0; i < 25; ++i) {
            CAPTURE(round);
            CAPTURE(i);
            now += microseconds{any(4) == 0 ? any(3'000'000) : any(200'000)};
            const chain parts{{"x", "k" + std::to_string(any(2))}, {"y", "k"}, {"z", "k" + std::to_string(any(2))}};
            if (any(12) == 0) {
                const auto until = now + microseconds{any(1'000'000)};
                CHECK(there.block("y", "k", until, now) == here.block("y", "k", until, now));
            }
            const auto got = there.take(parts, now), wanted = here.take(parts, now);
            refused += wanted.admitted ? 0 : 1;
            blocked += wanted.blocked ? 1 : 0;
            CHECK(got.admitted == wanted.admitted);
            CHECK(got.blocked == wanted.blocked);
            CHECK(got.blocked_part == wanted.blocked_part);
            CHECK(got.shadow_refused == wanted.shadow_refused);
            CHECK(got.retry_after == wanted.retry_after);
            CHECK(got.delay == wanted.delay);
            REQUIRE(got.decisions.size() == wanted.decisions.size());
            for (std::size_t d = 0; d < wanted.decisions.size(); ++d)
                CHECK(got.decisions[d] == wanted.decisions[d]);
        }
    }
    CHECK(refused > 100);
    CHECK(blocked > 10);
}
