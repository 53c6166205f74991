// TLS servers that misbehave in ways that redis-server cannot: scripted with OpenSSL on a real socket.
#include "tests/redis_client/client_under_test.hpp"
#include "tests/redis_client/scripted_server.hpp"
#include "tests/support/certificates.hpp"

#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include <atomic>
#include <csignal>

using namespace headgate;
using namespace headgate::testing;
using link_state = redis::link::state;
using namespace std::chrono_literals;

namespace {

// The server's side of one connection.
class tls_peer
{
public:
    tls_peer(const authority::files& own, int newest, int fd)
        : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free), ssl_(nullptr, SSL_free)
    {
        std::signal(SIGPIPE, SIG_IGN);                 // OpenSSL writes to closed connections
        SSL_CTX_set_security_level(context_.get(), 0); // old versions too
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
        SSL_CTX_set_max_proto_version(context_.get(), newest);
        SSL_CTX_use_certificate_chain_file(context_.get(), own.certificate.c_str());
        SSL_CTX_use_PrivateKey_file(context_.get(), own.key.c_str(), SSL_FILETYPE_PEM);
        ssl_.reset(SSL_new(context_.get()));
        SSL_set_fd(ssl_.get(), fd);
    }
    bool accept() { return SSL_accept(ssl_.get()) == 1; }
    void say(std::string_view text)
    {
        std::size_t n = 0;
        SSL_write_ex(ssl_.get(), text.data(), text.size(), &n);
    }
    std::string hear(std::string_view end)
    {
        std::string all;
        char bytes[4096];
        std::size_t n = 0;
        while (all.find(end) == all.npos && SSL_read_ex(ssl_.get(), bytes, sizeof bytes, &n) == 1)
            all.append(bytes, n);
        return all;
    }
    // Updates the keys in the next record. The client must update its keys too.
    void change_keys() { SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED); }

private:
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

redis::link_options options_for_tls(const scripted_server& server, const authority& ca)
{
    const tls_client_files files{ca.ca(), {}, {}};
    redis::link_options options;
    options.host = "127.0.0.1";
    options.port = server.port;
    options.timeout = 30s;
    options.connect_timeout = 30s; // reached only by a failure
    options.tls = std::make_shared<tls_context>(files);
    return options;
}

// Returns why the link does not become ready.
std::string why_not(const redis::link_options& options)
{
    client_loop loop(options);
    CHECK(loop.run_until([&] { return !loop.messages.empty(); }));
    return loop.messages.empty() ? "" : loop.messages.front();
}

bool begins(const std::string& text, std::string_view with) { return text.find(with) == 0; }

} // namespace

TEST_CASE("redis link, TLS: a server that speaks only TLS 1.1 is refused")
{
    authority ca;
    const auto own = ca.issue("IP:127.0.0.1");
    scripted_server server([&](int fd) { tls_peer(own, TLS1_1_VERSION, fd).accept(); });
    const auto why = why_not(options_for_tls(server, ca));
    CHECK_MESSAGE(begins(why, "the server refused the TLS connection: "), why);
}

TEST_CASE("redis link, TLS: an answer in plain text is reported as such")
{
    authority ca;
    scripted_server server([](int fd) {
        say(fd, "-ERR unknown command\r\n");
        hear(fd, "never");
    });
    const auto why = why_not(options_for_tls(server, ca));
    CHECK_MESSAGE(begins(why, "the server does not speak TLS: "), why);
}

TEST_CASE("redis link, TLS: a name that no certificate can have is refused before anything is sent")
{
    authority ca;
    std::atomic<int> received{0};
    scripted_server server([&](int fd) {
        char byte = 0;
        received += ::recv(fd, &byte, 1, 0) > 0 ? 1 : 0;
    });
    for (const std::string& name : {std::string("."), std::string("redis\0.example", 14)}) {
        auto options = options_for_tls(server, ca);
        options.tls_name = name;
        const auto why = why_not(options);
        CHECK_MESSAGE(why.find("is not a name that a server's certificate can have") != why.npos, why);
    }
    CHECK(received == 0);
}

TEST_CASE("redis link, TLS: a server that changes keys is answered")
{
    authority ca;
    const auto own = ca.issue("IP:127.0.0.1");
    scripted_server server([&](int fd) {
        tls_peer peer(own, TLS1_3_VERSION, fd);
        if (!peer.accept())
            return;
        peer.hear("headgate\r\n");
        peer.say("+OK\r\n");
        peer.hear("PING");
        peer.change_keys();
        peer.say("+PONG\r\n");
        peer.hear("PING");
        peer.say("+AGAIN\r\n");
        peer.hear("never");
    });
    client_loop loop(options_for_tls(server, ca));
    REQUIRE(loop.run_until([&] { return loop.is_ready(); }));
    CHECK(loop.ask({"PING"}) == "PONG");
    CHECK(loop.ask({"PING"}) == "AGAIN");
}

TEST_CASE("redis link, TLS: a record that was changed on the way ends the connection")
{
    authority ca;
    const auto own = ca.issue("IP:127.0.0.1");
    scripted_server server([&](int fd) {
        tls_peer peer(own, TLS1_3_VERSION, fd);
        if (!peer.accept())
            return;
        peer.hear("headgate\r\n");
        peer.say("+OK\r\n");
        peer.hear("PING");
        std::string record("\x17\x03\x03\x00\x20", 5);
        record.append(32, 'x'); // not encrypted with the session's key
        say(fd, record);
        hear(fd, "never");
    });
    client_loop loop(options_for_tls(server, ca));
    REQUIRE(loop.run_until([&] { return loop.is_ready(); }));
    loop.messages.clear();
    CHECK(loop.ask({"PING"}) == "(broken)");
    CHECK(loop.run_until([&] { return !loop.messages.empty(); }));
    CHECK_MESSAGE(begins(loop.messages.front(), "the TLS connection broke: "), loop.messages.front());
}
