// The link over TLS, with a real redis-server and certificates that the test makes.
#include "limiter/redis/client/command.hpp"
#include "tests/redis_client/client_under_test.hpp"
#include "tests/support/certificates.hpp"

#include <doctest/doctest.h>

using namespace headgate;
using namespace headgate::testing;
using link_state = redis::link::state;
using namespace std::chrono_literals;

namespace {

const std::string loopback = "DNS:localhost,IP:127.0.0.1";

bool becomes(client_loop& loop, link_state wanted)
{
    return loop.run_until([&] { return loop.link->now() == wanted; });
}

std::vector<std::string> server_options(const authority& ca, const authority::files& own, const char* clients = "no")
{
    return {"--tls-cert-file",    own.certificate, "--tls-key-file",     own.key,
            "--tls-ca-cert-file", ca.ca(),         "--tls-auth-clients", clients};
}

struct tls_server : redis_server
{
    tls_server(const authority& ca, const authority::files& own, const char* clients = "no",
               std::vector<std::string> more = {})
        : redis_server(joined(server_options(ca, own, clients), std::move(more)), speaks::tls)
    {}
    static std::vector<std::string> joined(std::vector<std::string> first, std::vector<std::string> second)
    {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    }
};

redis::link_options options_for_tls(const redis_server& server, const tls_client_files& files)
{
    redis::link_options options;
    options.host = "127.0.0.1";
    options.port = static_cast<std::uint16_t>(server.port());
    options.timeout = 30s;
    options.connect_timeout = 30s; // reached only by a failure
    options.tls = std::make_shared<tls_context>(files);
    return options;
}

// Returns why the link does not become ready.
std::string why_not(const redis::link_options& options)
{
    client_loop loop(options);
    CHECK(becomes(loop, link_state::waiting));
    CHECK(loop.link->seen().connected == 0);
    CHECK(loop.ask({"PING"}) == "(unreachable)");
    return loop.messages.empty() ? "" : loop.messages.front();
}

bool begins(const std::string& text, std::string_view with) { return text.find(with) == 0; }

} // namespace

TEST_CASE("redis link, TLS: a thousand commands of one turn each get their own reply")
{
    authority ca;
    tls_server server(ca, ca.issue(loopback));
    client_loop loop(options_for_tls(server, {ca.ca(), {}, {}}));
    REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
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

TEST_CASE("redis link, TLS: a command and a reply of a mebibyte pass, in either version")
{
    authority ca;
    const auto own = ca.issue(loopback);
    for (const char* version : {"TLSv1.2", "TLSv1.3"}) {
        CAPTURE(version);
        tls_server server(ca, own, "no", {"--tls-protocols", version});
        client_loop loop(options_for_tls(server, {ca.ca(), {}, {}}));
        REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
        std::string large(1 << 20, ' ');
        for (std::size_t i = 0; i < large.size(); ++i)
            large[i] = static_cast<char>('a' + i % 23);
        CHECK(loop.ask({"SET", "large", large}) == "OK");
        const bool same = loop.ask({"GET", "large"}) == large;
        CHECK(same);
        CHECK(loop.ask({"STRLEN", "large"}) == ":1048576");
    }
}

TEST_CASE("redis link, TLS: a login with a password, and a name that is looked up")
{
    authority ca;
    tls_server server(ca, ca.issue("DNS:localhost"), "no", {"--requirepass", "secret"});
    auto options = options_for_tls(server, {ca.ca(), {}, {}});
    options.host = "localhost";
    options.password = "secret";
    client_loop loop(options);
    REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
    CHECK(loop.ask({"PING"}) == "PONG");
    CHECK(loop.link->why().empty());
}

TEST_CASE("redis link, TLS: only a certificate of our CA, for this name and valid today, is accepted")
{
    authority ca, other;
    struct row
    {
        const char* what;
        authority& signer;
        const char* names;
        std::chrono::seconds lasts;
        const char* expected;
        const char* why;
    };
    const row rows[] = {
        {"another CA of the same name", other, "IP:127.0.0.1", 1h, "",
         "the server's certificate is not signed by a CA that we trust: "},
        {"another address", ca, "IP:127.0.0.2,DNS:localhost", 1h, "",
         "the server's certificate is not for 127.0.0.1: IP address mismatch"},
        {"an address written as a name", ca, "DNS:127.0.0.1", 1h, "",
         "the server's certificate is not for 127.0.0.1: IP address mismatch"},
        {"another name", ca, "DNS:localhost,IP:127.0.0.1", 1h, "redis.example",
         "the server's certificate is not for redis.example: hostname mismatch"},
        {"a wildcard one level up", ca, "DNS:*.redis.example", 1h, "b.a.redis.example",
         "the server's certificate is not for b.a.redis.example: hostname mismatch"},
        {"expired", ca, "IP:127.0.0.1", -1h, "", "the server's certificate is not accepted: certificate has expired"},
    };
    for (const auto& r : rows) {
        CAPTURE(r.what);
        tls_server server(ca, r.signer.issue(r.names, r.lasts));
        auto options = options_for_tls(server, {ca.ca(), {}, {}});
        options.tls_name = r.expected;
        const auto why = why_not(options);
        CHECK_MESSAGE(begins(why, r.why), why);
    }
    tls_server server(ca, ca.issue("DNS:*.redis.example"));
    auto options = options_for_tls(server, {ca.ca(), {}, {}});
    options.tls_name = "a.redis.example.";
    client_loop good(options);
    CHECK_MESSAGE(becomes(good, link_state::ready), good.link->why());
    options.tls = std::make_shared<tls_context>(tls_client_files{}); // the system's CAs have not signed it
    CHECK(begins(why_not(options), "the server's certificate is not signed by a CA that we trust: "));
}

TEST_CASE("redis link, TLS: a server that requires a client certificate gets it, or its alert is reported")
{
    authority ca, other;
    const auto ours = ca.issue("DNS:gateway"), strangers = other.issue("DNS:gateway");
    for (const char* version : {"TLSv1.2", "TLSv1.3"}) {
        CAPTURE(version);
        tls_server server(ca, ca.issue(loopback), "yes", {"--tls-protocols", version});
        client_loop loop(options_for_tls(server, {ca.ca(), ours.certificate, ours.key}));
        CHECK_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
        CHECK(loop.ask({"PING"}) == "PONG");

        const auto without = why_not(options_for_tls(server, {ca.ca(), {}, {}}));
        const bool is_named = begins(without, "the server requires a client certificate: ");
        // TLS 1.2 has no more specific alert.
        const bool is_refused = begins(without, "the server refused the TLS connection: ");
        CHECK_MESSAGE((is_named || (version == std::string("TLSv1.2") && is_refused)), without);

        const auto wrong = why_not(options_for_tls(server, {ca.ca(), strangers.certificate, strangers.key}));
        CHECK_MESSAGE(begins(wrong, "the server does not accept our certificate: "), wrong);
    }
}

TEST_CASE("redis link, TLS: a server with plain text on the port is reported differently from a missing server")
{
    authority ca;
    redis_server plain;
    auto options = options_for_tls(plain, {ca.ca(), {}, {}});
    options.connect_timeout = 300ms; // whether it answers our hello depends on the random bytes in it
    const auto why = why_not(options);
    CHECK_MESSAGE(why.find("speak TLS") != why.npos, why);
}

TEST_CASE("redis link, TLS: a server that accepts and stays silent is given up after the connect timeout")
{
    authority ca;
    tls_server server(ca, ca.issue(loopback));
    server.pause();
    auto options = options_for_tls(server, {ca.ca(), {}, {}});
    options.connect_timeout = 100ms;
    client_loop loop(options);
    CHECK(becomes(loop, link_state::waiting));
    CHECK_MESSAGE(begins(loop.link->why(), "no TLS handshake within the time allowed"), loop.link->why());
    server.resume();
}

TEST_CASE("redis link, TLS: a link may be stopped in the middle of the handshake")
{
    authority ca;
    tls_server server(ca, ca.issue(loopback));
    server.pause();
    client_loop loop(options_for_tls(server, {ca.ca(), {}, {}}));
    CHECK(!loop.run_until([] { return false; }, 50ms)); // our hello is sent, nothing comes back
    CHECK(loop.link->now() == link_state::connecting);
    const auto began = std::chrono::steady_clock::now();
    loop.link->stop();
    CHECK(loop.run_until([&] {
        return loop.link.use_count() == 2; /* the loop and its source */
    }));                                   // no operation is pending any more
    CHECK(std::chrono::steady_clock::now() - began < 10s);
    server.resume();
}

TEST_CASE("redis link, TLS: a killed server is noticed at once, and the link reconnects when it is back")
{
    authority ca;
    tls_server server(ca, ca.issue(loopback));
    client_loop loop(options_for_tls(server, {ca.ca(), {}, {}}));
    REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
    server.stop();
    CHECK(becomes(loop, link_state::waiting));
    CHECK(loop.ask({"PING"}) == "(unreachable)");
    server.start();
    REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
    CHECK(loop.ask({"PING"}) == "PONG");
    CHECK(loop.link->seen().connected == 2);
}

TEST_CASE("redis link, TLS: a connection that the server shuts down properly is reported as closed")
{
    authority ca;
    tls_server server(ca, ca.issue(loopback));
    client_loop loop(options_for_tls(server, {ca.ca(), {}, {}}));
    REQUIRE_MESSAGE(becomes(loop, link_state::ready), loop.link->why());
    loop.messages.clear();
    CHECK(loop.ask({"QUIT"}) == "OK");
    CHECK(loop.run_until([&] { return !loop.messages.empty(); }));
    CHECK(loop.messages.front() == "the server closed the connection");
    REQUIRE(becomes(loop, link_state::ready));
    CHECK(loop.ask({"PING"}) == "PONG");
    CHECK(loop.link->seen().broken == 1);
}
