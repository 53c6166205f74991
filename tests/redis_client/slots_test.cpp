// Hash slots: known ones, those that a real server computes, and maps and redirections of nodes.
#include "limiter/redis/client/slots.hpp"
#include "limiter/redis/redis_key.hpp"
#include "limiter/redis/slot_groups.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace headgate::testing;

namespace {

std::optional<redis::slot_map> map_of(std::string_view bytes)
{
    redis::reply_reader reader;
    reader.feed(bytes);
    REQUIRE(reader.next());
    return redis::slot_map::read(reader.current(), "answering");
}

std::string master_of(const redis::slot_map& map, std::uint16_t slot)
{
    const auto* const node = map.master_of(slot);
    return node ? node->text() : "none";
}

} // namespace

TEST_CASE("redis slots: known keys are in known slots, and only the first hash tag counts")
{
    const std::pair<std::string, int> rows[] = {{"123456789", 12739}, {"foo", 12182}, {"", 0}};
    for (const auto& [key, slot] : rows) {
        CAPTURE(key);
        CHECK(redis::slot_of(key) == slot);
    }
    const std::pair<const char*, const char*> same[] = {{"{user1000}.following", "{user1000}.followers"},
                                                        {"{user1000}.following", "user1000"},
                                                        {"foo{bar}{zap}", "bar"},
                                                        {"foo{{bar}}zap", "{bar"},
                                                        {"a}{b}", "b"},
                                                        {"hg:1:{api:one}", "api:one"}};
    for (const auto& [one, other] : same) {
        CAPTURE(one);
        CHECK(redis::slot_of(one) == redis::slot_of(other));
    }
    CHECK(redis::slot_of("foo{}{bar}") != redis::slot_of("bar")); // an empty tag is ignored
    CHECK(redis::slot_of("foo{bar") != redis::slot_of("bar"));
}

TEST_CASE("redis slots: a real node computes the same slots, and its map is read")
{
    redis_server node({"--cluster-enabled", "yes"});
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        std::string key;
        for (auto n = random() % 12; n > 0; --n)
            key += "ab{}:~%\xff"[random() % 8];
        CAPTURE(key);
        CHECK(ask_server(node, {"CLUSTER", "KEYSLOT", key}) == std::to_string(redis::slot_of(key)));
    }
    REQUIRE(ask_server(node, {"CLUSTER", "ADDSLOTSRANGE", "0", "99", "200", "16383"}) == "OK");
    redis::link_options options;
    options.host = "127.0.0.1";
    options.port = static_cast<std::uint16_t>(node.port());
    options.timeout = std::chrono::seconds{10};
    client_loop loop(options);
    REQUIRE(loop.run_until([&] { return loop.is_ready(); }));
    std::optional<redis::slot_map> map;
    const auto asking = [](redis::link& to, std::optional<redis::slot_map>& out) -> headgate::task<void> {
        const auto write = [](std::string& command) { command += "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n"; };
        const auto got = co_await to.ask(to.turn_began(), write);
        if (got.failed == redis::failure::none)
            out = redis::slot_map::read(got.value(), to.options().host);
    };
    REQUIRE(loop.run(asking(*loop.link, map)));
    REQUIRE(map);
    CHECK(map->covered() == redis::slot_count - 100);
    CHECK(master_of(*map, 0) == "127.0.0.1:" + std::to_string(node.port()));
    CHECK(master_of(*map, 150) == "none");
}

TEST_CASE("redis slots: a map of several nodes, changed by MOVED and not by ASK")
{
    auto map = map_of("*3\r\n"
                      "*4\r\n:0\r\n:5460\r\n*4\r\n$8\r\n10.0.0.1\r\n:7001\r\n$1\r\na\r\n*0\r\n"
                      "*3\r\n$8\r\n10.0.0.9\r\n:7009\r\n$1\r\nr\r\n"
                      "*3\r\n:5461\r\n:10922\r\n*2\r\n$-1\r\n:7002\r\n"
                      "*3\r\n:10923\r\n:16383\r\n*2\r\n$1\r\n?\r\n:7003\r\n");
    REQUIRE(map);
    CHECK(map->masters().size() == 2);
    CHECK(map->covered() == 10923);
    CHECK(master_of(*map, 5460) == "10.0.0.1:7001");
    CHECK(master_of(*map, 5461) == "answering:7002");
    CHECK(master_of(*map, 10923) == "none");
    CHECK(master_of(*map, 16384) == "none");
    map->apply(*redis::parse_redirection("MOVED 3999 127.0.0.1:6381", "answering"));
    map->apply(*redis::parse_redirection("ASK 4000 127.0.0.1:6381", "answering"));
    CHECK(master_of(*map, 3999) == "127.0.0.1:6381");
    CHECK(master_of(*map, 4000) == "10.0.0.1:7001");
    CHECK(map->masters().size() == 3);
}

TEST_CASE("redis slots: a malformed map is refused")
{
    for (const auto* bytes :
         {"+OK\r\n", "*-1\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n",
          "*1\r\n*3\r\n:5\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
          "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
          "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n"}) {
        CAPTURE(bytes);
        CHECK(!map_of(bytes));
    }
    const auto empty = map_of("*0\r\n");
    REQUIRE(empty);
    CHECK(empty->covered() == 0);
}

TEST_CASE("redis slots: MOVED and ASK are read strictly")
{
    struct row
    {
        const char* text;
        const char* to;
    };
    for (const auto& r :
         {row{"MOVED 3999 127.0.0.1:6381", "127.0.0.1:6381"}, row{"-MOVED 0 a.example:1", "a.example:1"},
          row{"MOVED 16383 ::1:6381", "::1:6381"}, row{"MOVED 1 :6381", "answering:6381"},
          row{"ASK 7 127.0.0.1:6381 script: abc", "127.0.0.1:6381"}}) {
        CAPTURE(r.text);
        const auto result = redis::parse_redirection(r.text, "answering");
        REQUIRE(result);
        CHECK(result->to.text() == r.to);
        CHECK((result->what == redis::redirection::kind::ask) == (std::string_view(r.text).starts_with("ASK")));
    }
    for (const auto* bad : {"", "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1", "MOVED 1 a",
                            "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 ?:6381", "moved 1 a:1",
                            "ERR 1 a:1", "MOVED  1 a:1"}) {
        CAPTURE(bad);
        CHECK(!redis::parse_redirection(bad, "answering"));
    }
}

TEST_CASE("redis slots: the keys of a chain are grouped by slot, in their order")
{
    const std::vector<std::string> keys{"{a}1", "{b}1", "{a}2", "{c}", "{b}2", "{a}3"};
    redis::slot_groups groups;
    groups.find(keys.size(), [&](std::size_t i) -> std::string_view { return keys[i]; });
    REQUIRE(groups.count == 3);
    std::size_t all = 0;
    for (std::size_t g = 0; g < groups.count; ++g) {
        const auto places = groups.places(groups.all[g]);
        CHECK(std::is_sorted(places.begin(), places.end()));
        for (const auto place : places)
            CHECK(redis::slot_of(keys[place]) == groups.all[g].slot);
        all += places.size();
    }
    CHECK(all == keys.size());
    groups.find(2, [&](std::size_t i) -> std::string_view { return keys[2 * i]; });
    CHECK(groups.count == 1);
    CHECK(groups.all[0].count == 2);
}
