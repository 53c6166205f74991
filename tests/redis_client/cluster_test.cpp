// A cluster of real nodes: how it is found, redirections, and slots that are not served.
#include "tests/redis_client/cluster_client.hpp"
#include "tests/redis_client/sentinel_group.hpp"
#include "tests/support/certificates.hpp"

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

const std::string user = "api/user";

// Returns a key of the group in that slot.
std::string key_in(std::uint16_t slot, const std::string& group, int nth = 0)
{
    for (int i = 0;; ++i) {
        auto key = "s" + std::to_string(i);
        if (slot_of_key(group, key) == slot && nth-- == 0)
            return key;
    }
}

} // namespace

TEST_CASE("redis cluster: keys of every node are decided, exactly, and a node that lost its scripts gets them again")
{
    cluster_group group;
    const one_rule ten(user, 10);
    cluster_client c(group);
    REQUIRE(c.becomes_ready());
    CHECK(c.links->map().covered() == redis::slot_count);
    CHECK(c.links->servers().size() == 3);
    const auto maps = c.links->rounds().maps;
    for (int round = 0; round < 2; ++round) {
        for (std::size_t node = 0; node < 3; ++node) {
            const auto key = group.key_on(node, user, round);
            int passed = 0;
            for (int i = 0; i < 12; ++i)
                passed += c.take_now(ten, key).admitted ? 1 : 0;
            CHECK(passed == 10);
        }
        c.loop.ask_all({"SCRIPT", "FLUSH"});
    }
    CHECK(c.store.seen().redirections == 0);
    CHECK(c.links->rounds().maps <= maps + 1); // requests do not read the map
}

TEST_CASE("redis cluster: a request that meets a moved slot follows it, and later requests go to the new node directly")
{
    cluster_group group;
    const one_rule ten(user, 10);
    cluster_client c(group);
    REQUIRE(c.becomes_ready());
    const auto key = group.key_on(0, user);
    const auto slot = slot_of_key(user, key);
    CHECK(c.take_now(ten, key).admitted);
    group.begin_move(slot, 0, 2);
    group.move_keys(slot, 0, 2);
    group.end_move(slot, 0, 2);
    CHECK(c.links->map().master_of(slot)->port == group.nodes[0]->port());
    const auto got = c.take_now(ten, key);
    CHECK(got.admitted);
    CHECK(got.decisions.at(0).remaining == 8); // it has moved with its used amount
    CHECK(c.links->rounds().moved == 1);
    CHECK(c.links->map().master_of(slot)->port == group.nodes[2]->port());
    CHECK(c.take_now(ten, key).decisions.at(0).remaining == 7);
    CHECK(c.store.seen().redirections == 1);
    CHECK(c.store.seen().errors == 0);
}

TEST_CASE("redis cluster: while a slot migrates, ASKING is sent for keys that have moved, and only for them")
{
    cluster_group group;
    const one_rule ten(user, 10);
    cluster_client c(group);
    REQUIRE(c.becomes_ready());
    const auto first = group.key_on(0, user);
    const auto slot = slot_of_key(user, first);
    const auto other = key_in(slot, user), fresh = key_in(slot, user, 1);
    CHECK(c.take_now(ten, first).admitted);
    CHECK(c.take_now(ten, other).admitted);
    group.begin_move(slot, 0, 1);
    CHECK(c.take_now(ten, first).decisions.at(0).remaining == 8);
    CHECK(c.links->rounds().ask == 0);
    group.move_keys(slot, 0, 1, 1);
    CHECK(c.take_now(ten, first).decisions.at(0).remaining == 7); // one of the two has moved
    CHECK(c.take_now(ten, other).decisions.at(0).remaining == 8);
    CHECK(c.links->rounds().ask == 1);
    CHECK(c.take_now(ten, fresh).decisions.at(0).remaining == 9); // a new key is made on the new node
    CHECK(c.links->rounds().ask == 2);
    CHECK(c.links->map().master_of(slot)->port == group.nodes[0]->port());
    group.move_keys(slot, 0, 1);
    group.end_move(slot, 0, 1);
    CHECK(c.take_now(ten, first).decisions.at(0).remaining == 6);
    CHECK(c.take_now(ten, other).decisions.at(0).remaining == 7);
    CHECK(c.take_now(ten, fresh).decisions.at(0).remaining == 8);
    CHECK(c.links->seen().late_replies == 0);
}

TEST_CASE("redis cluster: keys of one call on both sides of a move: tried again until the timeout, then an outage")
{
    cluster_group group;
    const one_rule ten(user, 10), five("api/path", 5);
    cluster_client c(group, 150ms);
    REQUIRE(c.becomes_ready());
    const auto key = group.key_on(0, user);
    const auto slot = slot_of_key(user, key);
    const auto path = key_in(slot, "api/path");
    const std::vector<part> both{{ten.rules.get(), key, {}}, {five.rules.get(), path, {}}};
    CHECK(c.take_now(both).admitted);
    CHECK(c.store.seen().split_chains == 0); // one slot, one call
    group.begin_move(slot, 0, 1);
    group.move_keys(slot, 0, 1, 1);
    const auto began = steady::now();
    const auto got = c.take_now(both);
    MESSAGE("TRYAGAIN until an outage after ", ms(steady::now() - began), " ms of 150, tried ",
            c.store.seen().tried_again);
    CHECK(got.trouble != redis::trouble::none);
    CHECK(c.store.seen().tried_again > 3);
    CHECK(steady::now() - began < 2s);
    group.move_keys(slot, 0, 1);
    CHECK(c.take_now(both).decisions.at(0).remaining == 8);
    group.end_move(slot, 0, 1);
    CHECK(c.take_now(both).decisions.at(1).remaining == 2);
}

TEST_CASE("redis cluster: one seed that answers is enough; when none does, the reason is reported")
{
    cluster_group group;
    const one_rule ten(user, 10);
    auto options = group.client_options(5s);
    options.seeds = {{"127.0.0.1", 1}, {"no-such-host.invalid", 6379}, options.seeds[1]};
    {
        cluster_client c(options);
        REQUIRE(c.becomes_ready());
        CHECK(c.take_now(ten, "one").admitted);
    }
    options.seeds = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
    {
        cluster_client c(options);
        CHECK(c.loop.run_until([&] { return c.links->now() == redis::link::state::waiting; }, 10s));
        CHECK_MESSAGE(c.links->why().find("no node tells where the slots are: 127.0.0.1:1: ") == 0, c.links->why());
        CHECK_MESSAGE(c.links->why().find("Connection refused") != std::string::npos, c.links->why());
        CHECK(c.take_now(ten, "one").trouble == redis::trouble::unreachable);
    }
    redis_server alone;
    options.seeds = {{"127.0.0.1", static_cast<std::uint16_t>(alone.port())}};
    cluster_client c(options);
    const auto says = [&] { return c.links->why().find("cluster support disabled") != std::string::npos; };
    CHECK_MESSAGE(c.loop.run_until(says, 10s), c.links->why());
    options = group.client_options(5s);
    for (const auto& each : group.nodes)
        each->stop();
    cluster_client early(options);
    CHECK(early.loop.run_until([&] { return early.links->now() == redis::link::state::waiting; }, 10s));
    for (const auto& each : group.nodes)
        each->start();
    REQUIRE(early.becomes_ready(20s));
    CHECK(early.loop.run_until([&] { return early.take_now(ten, "one").admitted; }, 10s));
}

TEST_CASE("redis cluster: nodes that announce no host are where they were asked")
{
    cluster_group group(3, 0, {"--cluster-preferred-endpoint-type", "unknown-endpoint"});
    const one_rule ten(user, 10);
    auto options = group.client_options(5s);
    options.seeds.resize(1);
    cluster_client c(options);
    REQUIRE(c.becomes_ready());
    for (std::size_t node = 0; node < 3; ++node)
        CHECK(c.take_now(ten, group.key_on(node, user)).admitted);
    const auto key = group.key_on(0, user);
    const auto slot = slot_of_key(user, key);
    group.begin_move(slot, 0, 1);
    group.move_keys(slot, 0, 1);
    CHECK(c.take_now(ten, key).decisions.at(0).remaining == 8); // ASK
    group.end_move(slot, 0, 1);
    CHECK(c.take_now(ten, key).decisions.at(0).remaining == 7); // MOVED
    CHECK(c.links->servers().size() == 3);
}

TEST_CASE("redis cluster: a lost master is an outage for its keys at once, then for all keys: CLUSTERDOWN")
{
    cluster_group group;
    const one_rule many(user, 1'000'000);
    cluster_client c(group, 500ms);
    REQUIRE(c.becomes_ready());
    const auto lost = group.key_on(1, user), kept = group.key_on(0, user);
    group.nodes[1]->stop();
    CHECK(c.loop.run_until([&] { return !c.links->why().empty(); }, 5s));
    CHECK(c.loop.is_ready()); // the other masters are ready
    const auto began = steady::now();
    CHECK(c.take_now(many, lost).trouble == redis::trouble::unreachable);
    CHECK(steady::now() - began < 400ms); // no call waits
    const auto is_down = [&] {
        return c.take_now(many, kept).trouble == redis::trouble::refused &&
               c.store.last_error() == redis::error_class::cluster_down;
    };
    CHECK(c.loop.run_until(is_down, 10s));
    group.nodes[1]->start();
    CHECK(c.loop.run_until([&] { return c.take_now(many, lost).admitted && c.take_now(many, kept).admitted; }, 20s));
    REQUIRE(c.becomes_ready());
}

TEST_CASE("redis cluster: over TLS and with a password, on every node")
{
    authority ours;
    const auto certificate = ours.issue("IP:127.0.0.1");
    cluster_group group(3, 0,
                        {"--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key,
                         "--tls-ca-cert-file", ours.ca(), "--tls-auth-clients", "no", "--tls-cluster", "yes"},
                        redis_server::speaks::tls);
    for (const auto& each : group.nodes)
        REQUIRE(ask_server(*each, {"CONFIG", "SET", "requirepass", "secret"}) == "OK");
    const one_rule ten(user, 10);
    auto options = group.client_options(5s);
    options.seeds.resize(1);
    tls_client_files files;
    files.ca = ours.ca();
    options.node.tls = std::make_shared<const tls_context>(files);
    {
        auto wrong = options;
        wrong.node.password = "wrong";
        cluster_client c(wrong);
        const auto says = [&] { return c.links->why().find("the password is wrong") != std::string::npos; };
        CHECK_MESSAGE(c.loop.run_until(says, 10s), c.links->why());
    }
    options.node.password = "secret";
    cluster_client c(options);
    REQUIRE(c.becomes_ready());
    for (std::size_t node = 0; node < 3; ++node)
        CHECK(c.take_now(ten, group.key_on(node, user)).admitted);
}
