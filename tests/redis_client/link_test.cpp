// The connection to Redis under faults: real servers where they can be made to misbehave, otherwise a scripted one.
#include "limiter/redis/client/command.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/redis_client/scripted_server.hpp"

#include <doctest/doctest.h>

using namespace headgate;
using namespace headgate::testing;
using link_state = redis::link::state;
using namespace std::chrono_literals;

namespace {

bool becomes(client_loop& loop, link_state wanted)
{
    return loop.run_until([&] { return loop.link->now() == wanted; });
}

redis::link_options options_for_port(std::uint16_t port)
{
    redis::link_options options;
    options.host = "127.0.0.1";
    options.port = port;
    options.timeout = 30s;
    return options;
}

} // namespace

TEST_CASE("redis link: logs in, by password and by user, selects its database and sends its name")
{
    redis_server server({"--requirepass", "secret", "--user", "gate", "on", ">pw", "~*", "&*", "+@all"});
    auto options = options_for_port(static_cast<std::uint16_t>(server.port()));
    options.password = "secret";
    options.database = 3;
    client_loop first(options);
    REQUIRE(becomes(first, link_state::ready));
    CHECK(first.ask({"SET", "a", "1"}) == "OK");
    CHECK(first.ask({"CLIENT", "GETNAME"}) == "headgate");

    options.username = "gate";
    options.password = "pw";
    options.host = "localhost"; // a name, looked up
    client_loop second(options);
    REQUIRE(becomes(second, link_state::ready));
    CHECK(second.ask({"ACL", "WHOAMI"}) == "gate");
    CHECK(second.ask({"GET", "a"}) == "1");

    options.password = "wrong";
    client_loop third(options);
    REQUIRE(becomes(third, link_state::waiting));
    REQUIRE(!third.messages.empty());
    CHECK(third.messages.back().find("the user or the password is wrong: WRONGPASS") == 0);
    CHECK(third.ask({"PING"}) == "(unreachable)");
}

TEST_CASE("redis link: a thousand commands of one turn each get their own reply, and leave in few writes")
{
    client_loop loop(options_for(shared_server()));
    REQUIRE(becomes(loop, link_state::ready));
    int right = 0, ended = 0;
    const auto echo = [](client_loop& in, int n, int& good, int& done) -> task<void> {
        const auto text = "number " + std::to_string(n);
        const auto write = [&](std::string& out) { redis::append_command(out, {"ECHO", text}); };
        const auto got = co_await in.link->ask(in.link->turn_began(), write);
        good += got.failed == redis::failure::none && got.value().text() == text ? 1 : 0;
        ++done;
    };
    for (int i = 0; i < 1000; ++i)
        spawn(loop.events.get_executor(), echo(loop, i, right, ended));
    CHECK(loop.run_until([&] { return ended == 1000; }));
    CHECK(right == 1000);
}

TEST_CASE("redis link: a killed server is noticed at once, and the link reconnects when it is back")
{
    redis_server server;
    client_loop loop(options_for(server));
    REQUIRE(becomes(loop, link_state::ready));
    server.stop();
    CHECK(loop.run_until([&] { return loop.link->now() == link_state::waiting; }));
    CHECK(loop.ask({"PING"}) == "(unreachable)");
    server.start();
    REQUIRE(becomes(loop, link_state::ready));
    CHECK(loop.ask({"PING"}) == "PONG");
    CHECK(loop.link->seen().connected == 2);
}

TEST_CASE("redis link: no command waits longer than the timeout, late replies are dropped (M1)")
{
    redis_server server;
    auto options = options_for(server);
    options.timeout = 50ms;
    options.failures_to_rest = 3;
    options.probe_interval = 20ms;
    client_loop loop(options);
    REQUIRE(becomes(loop, link_state::ready));
    server.pause();
    for (int i = 0; i < 3; ++i) {
        const auto began = std::chrono::steady_clock::now();
        CHECK(loop.ask({"ECHO", "late"}) == "(timeout)");
        CHECK(std::chrono::steady_clock::now() - began < 10s);
    }
    CHECK(loop.link->now() == link_state::resting);
    CHECK(loop.ask({"PING"}) == "(unreachable)"); // at once
    server.resume();
    REQUIRE(becomes(loop, link_state::ready));
    for (int i = 0; i < 50; ++i) {
        const auto text = "fresh " + std::to_string(i);
        CHECK(loop.ask({"ECHO", text}) == text);
    }
    CHECK(loop.link->seen().timeouts >= 3);
}

TEST_CASE("redis link: what is not Redis's protocol ends the connection, and nothing else (M6)")
{
    struct row
    {
        const char* what;
        std::string bytes;
        const char* why;
    };
    const row rows[] = {
        {"garbage", "!what?\r\n", "does not speak Redis's protocol"},
        {"a reply cut in the middle", "$10\r\nabc", "closed the connection"},
        {"nesting without end", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
         "does not speak Redis's protocol"},
        {"a number that is none", ":12x\r\n", "does not speak Redis's protocol"},
        {"a text larger than any", "$900000000\r\n" + std::string(5 << 20, 'x'), "larger than any expected one"},
        {"two replies to one question", "+A\r\n+B\r\n", "without a command"},
    };
    for (const auto& r : rows) {
        CAPTURE(r.what);
        scripted_server server([&](int fd) {
            accept_login(fd);
            hear(fd, "PING");
            say(fd, r.bytes);
            ::shutdown(fd, SHUT_WR);
            hear(fd, "never");
        });
        client_loop loop(options_for_port(server.port));
        REQUIRE(becomes(loop, link_state::ready));
        loop.messages.clear();
        const auto result = loop.ask({"PING"});
        CHECK((result == "(broken)" || result == "A"));
        CHECK(loop.run_until([&] { return !loop.messages.empty(); }));
        CHECK_MESSAGE(loop.messages.front().find(r.why) != std::string::npos, loop.messages.front());
        CHECK(becomes(loop, link_state::ready)); // a new connection works
    }
}

TEST_CASE("redis link: a reply that never becomes whole ends the connection, though bytes keep coming")
{
    scripted_server server([&](int fd) {
        accept_login(fd);
        hear(fd, "PING");
        say(fd, "$900000\r\n"); // a damaged length: every later reply is a part of this text
        while (!hear(fd, "PING").empty())
            say(fd, "+PONG\r\n");
    });
    auto options = options_for_port(server.port);
    options.timeout = 50ms;
    options.failures_to_rest = 1;
    options.probe_interval = 20ms;
    client_loop loop(options);
    REQUIRE(becomes(loop, link_state::ready));
    CHECK(loop.ask({"PING"}) == "(timeout)");
    CHECK(loop.run_until([&] { return loop.link->seen().broken == 1; }, 10s));
    CHECK(becomes(loop, link_state::ready)); // on a new connection
}

TEST_CASE("redis link: replies that come byte by byte are read")
{
    scripted_server server([&](int fd) {
        accept_login(fd);
        hear(fd, "PING");
        for (const char c : std::string_view("*2\r\n$5\r\nhello\r\n:-7\r\n")) {
            say(fd, {&c, 1});
            ::usleep(500);
        }
        hear(fd, "never");
    });
    client_loop loop(options_for_port(server.port));
    REQUIRE(becomes(loop, link_state::ready));
    bool right = false;
    const auto asking = [](client_loop& in, bool& good) -> task<void> {
        const auto write = [](std::string& out) { redis::append_command(out, {"PING"}); };
        const auto got = co_await in.link->ask(in.link->turn_began(), write);
        const auto result = got.value();
        good = result.size() == 2 && result[0].text() == "hello" && result[1].number() == -7;
    };
    CHECK(loop.run(asking(loop, right)));
    CHECK(right);
}
