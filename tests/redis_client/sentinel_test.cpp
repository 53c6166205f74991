// The master behind Sentinel: found, lost, and found again, with real servers and real sentinels.
#include "tests/redis_client/sentinel_client.hpp"

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

TEST_CASE("redis sentinel: an announcement is parsed strictly, and only for our master")
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

TEST_CASE("redis sentinel: the master is found, takes are decided, and an announced switch is followed at once")
{
    sentinel_group group(2);
    const one_rule ten("api/user", 10);
    sentinel_client c(group);
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
    CHECK_MESSAGE(c.loop.run_until([&] { return group.named_by_all() == c.port(); }, 10s), "the client asks ",
                  c.port());
    const auto got = c.take_now(*ten.rules, "one");
    CHECK(got.trouble == redis::trouble::none);
    CHECK(!got.admitted); // the used amount is kept
    CHECK(c.loop.run_until([&] { return c.master->rounds().announced > 0; }, 10s));
    MESSAGE("rounds ", c.master->rounds().rounds, ", switches ", c.master->rounds().switches, ", announced ",
            c.master->rounds().announced);
    CHECK(c.master->rounds().switches >= 2); // more when Sentinel changed its choice
}

TEST_CASE("redis sentinel: a primary that became a replica admits nothing; the next master does")
{
    sentinel_group group(2);
    const one_rule many("api/user", 1'000'000);
    sentinel_client c(group, 200ms);
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
    CHECK(c.master->rounds().suspicions > 0);
    CHECK_MESSAGE(c.port() != group.primary.port(), "no other master: ", c.master->why());
    MESSAGE("READONLY to another master: ", ms(steady::now() - began), " ms, ", read_only, " refused");
    REQUIRE(c.becomes_ready());
    CHECK(c.take_now(*many.rules, "one").admitted);
}

TEST_CASE("redis sentinel: a take that meets READONLY is repeated on the next master, within its timeout")
{
    sentinel_group group(0);
    redis_server next;
    const one_rule ten("api/user", 10);
    sentinel_client c(group, 5s, 1h); // the next master is not found before the take needs it
    REQUIRE(c.becomes_ready());
    const auto began = steady::now(); // error replies cause a new round only every 100 ms
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

TEST_CASE("redis sentinel: no sentinel at the start: waiting, with a reason, until they start")
{
    sentinel_group group(0, redis_server::when::later);
    const one_rule ten("api/user", 10);
    sentinel_client c(group);
    CHECK(c.loop.run_until([&] { return c.master->now() == redis::link::state::waiting; }, 10s));
    CHECK_MESSAGE(c.master->why().find("no sentinel answers: 127.0.0.1:") == 0, c.master->why());
    CHECK_MESSAGE(c.master->why().find("Connection refused") != std::string::npos, c.master->why());
    CHECK(c.take_now(*ten.rules, "one").trouble == redis::trouble::unreachable);
    group.start_sentinels();
    REQUIRE(c.becomes_ready());
    CHECK(c.take_now(*ten.rules, "one").admitted);
}

TEST_CASE("redis sentinel: sentinels have a separate login, and an error in it is reported")
{
    redis_server primary;
    const auto monitor = "sentinel monitor main 127.0.0.1 " + std::to_string(primary.port()) + " 1\n";
    redis_server sentinel(redis_server::as_sentinel{"requirepass secret\n" + monitor});
    redis::sentinel_options options;
    options.sentinels = {{"127.0.0.1", static_cast<std::uint16_t>(sentinel.port())}};
    options.master = "main";
    options.server.timeout = 5s;
    options.sentinel = options.server;
    const auto source = [&](client_loop& in) {
        return std::make_shared<redis::sentinel_master>(in.events, in.names, options, in.keep_told());
    };
    const auto says = [](client_loop& loop, std::string_view words) {
        return loop.run_until([&] { return loop.links->why().find(words) != std::string::npos; }, 10s);
    };
    {
        client_loop without(source);
        CHECK_MESSAGE(says(without, "NOAUTH"), without.links->why());
        CHECK(without.links->now() == redis::link::state::waiting);
    }
    options.sentinel.password = "wrong";
    {
        client_loop wrong(source);
        CHECK_MESSAGE(says(wrong, "the user or the password is wrong"), wrong.links->why());
    }
    options.sentinel.password = "secret";
    {
        client_loop right(source);
        CHECK_MESSAGE(right.run_until([&] { return right.is_ready(); }, 10s), right.links->why());
        CHECK(right.ask({"PING"}) == "PONG");
    }
    options.master = "another";
    client_loop unknown(source);
    CHECK_MESSAGE(says(unknown, "knows no master of the name another"), unknown.links->why());
    CHECK(unknown.ask({"PING"}) == "(unreachable)");
}
