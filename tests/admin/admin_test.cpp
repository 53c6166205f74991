#include "tests/admin/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate;
using namespace headgate::tests;

namespace {

std::string raw_admin(running_gateway& gateway, const std::string& bytes)
{
    auto client = raw_connection::to(gateway.app().admin_port());
    client.send(bytes);
    return client.read_all();
}

} // namespace

TEST_CASE("healthz is ok, readyz gives the reason when it is not, metrics are in the text format")
{
    running_gateway gateway(echo_configuration());
    const auto health = ask_admin(gateway, "/healthz");
    CHECK(status_of(health) == 200);
    CHECK(body_of(health) == "ok\n");
    const auto ready = ask_admin(gateway, "/readyz?verbose");
    CHECK(status_of(ready) == 200);
    CHECK(nlohmann::json::parse(body_of(ready))["ready"] == true);
    CHECK(field_of(ask_admin(gateway, "/metrics"), "Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
}

TEST_CASE("draining: readiness fails while requests in flight still finish and health stays ok (O2)")
{
    std::atomic<bool> answer{false};
    raw_upstream upstream([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        while (!answer)
            std::this_thread::yield();
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    });
    running_gateway gateway(running_gateway::in_front_of(upstream, "admin: { address: 127.0.0.1:0 }\n"));
    auto client = gateway.connect();
    client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    upstream.wait_for_received(1);
    gateway.app().drain();
    const auto ready = ask_admin(gateway, "/readyz");
    CHECK(status_of(ready) == 503);
    CHECK(nlohmann::json::parse(body_of(ready))["reasons"] == nlohmann::json{"draining"});
    CHECK(status_of(ask_admin(gateway, "/healthz")) == 200);
    answer = true;
    CHECK(body_of(client.read_response()) == "hi");
}

TEST_CASE("a failing snapshot is a warning: limits still hold, the gateway stays ready")
{
    temporary_folder folder;
    auto text = echo_configuration();
    const std::string store = "type: memory, max_keys: 10000";
    text.replace(text.find(store), store.size(),
                 store + ", snapshot: { path: " + folder.file("no/such/folder/counters") + ", interval: 1s }");
    running_gateway gateway(text);
    std::string ready;
    eventually([&] {
        ready = ask_admin(gateway, "/readyz");
        return !nlohmann::json::parse(body_of(ready))["warnings"].empty();
    });
    CHECK(status_of(ready) == 200);
    CHECK(body_of(ready).find("store local: snapshot failing") != std::string::npos);
}

TEST_CASE("a store that is full is a warning, logged once: the gateway stays ready")
{
    auto text = echo_configuration();
    const std::string size = "max_keys: 10000";
    text.replace(text.find(size), size.size(), "max_keys: 1");
    const captured_log log;
    running_gateway gateway(text);
    CHECK(body_of(ask_admin(gateway, "/readyz")).find("full") == std::string::npos);
    std::string ready;
    int key = 0;
    eventually([&] {
        gateway.ask("GET /limited/x HTTP/1.1\r\nHost: a\r\nX-API-Key: k" + std::to_string(++key) +
                    "\r\nConnection: close\r\n\r\n");
        ready = ask_admin(gateway, "/readyz");
        return ready.find("store local: full") != std::string::npos;
    });
    CHECK(status_of(ready) == 200);
    CHECK(nlohmann::json::parse(body_of(ready))["warnings"][0] ==
          "store local: full: new keys share overflow counters; raise max_keys");
    CHECK(count(log.text(), "store local: full") == 1);
}

TEST_CASE("other paths are 404, other methods 405, HEAD has no body")
{
    running_gateway gateway(echo_configuration());
    CHECK(status_of(ask_admin(gateway, "/")) == 404);
    CHECK(status_of(ask_admin(gateway, "/healthz/")) == 404);
    const auto post = raw_admin(
        gateway, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
    CHECK(status_of(post) == 405);
    CHECK(field_of(post, "Allow") == "GET, HEAD");
    const auto head = raw_admin(gateway, "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    CHECK(status_of(head) == 200);
    CHECK(field_of(head, "Content-Length") == "3");
    CHECK(body_of(head).empty());
}

TEST_CASE("a connection may send several requests")
{
    running_gateway gateway(echo_configuration());
    auto client = raw_connection::to(gateway.app().admin_port());
    for (int i = 0; i < 3; ++i) {
        client.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK(body_of(client.read_response()) == "ok\n");
    }
}

TEST_CASE("with a configured token /metrics and unknown paths require it, and a reload changes it")
{
    const std::string with_token = "admin: { address: 127.0.0.1:0, token: hush }\n";
    running_gateway gateway(echo_configuration("", with_token));
    const auto bearer = [&](const std::string& path, const std::string& value) {
        return status_of(ask_admin(gateway, path, "Authorization: " + value + "\r\n"));
    };
    for (const char* path : {"/metrics", "/nowhere"}) {
        CAPTURE(path);
        const auto refused = ask_admin(gateway, path);
        CHECK(status_of(refused) == 401);
        CHECK(field_of(refused, "WWW-Authenticate") == "Bearer");
        CHECK(body_of(refused).find("hush") == std::string::npos);
    }
    CHECK(bearer("/metrics", "Bearer hush") == 200);
    CHECK(bearer("/metrics", "bearer hush") == 200);
    for (const char* wrong : {"hush", "Bearer", "Bearer ", "Bearer hus", "Bearer hushh", "Bearer Hush", "Basic hush"}) {
        CAPTURE(wrong);
        CHECK(bearer("/metrics", wrong) == 401);
    }
    gateway.app().reload(
        load_configuration(echo_configuration("", "admin: { address: 127.0.0.1:0, token: louder }\n")));
    CHECK(bearer("/metrics", "Bearer hush") == 401);
    CHECK(bearer("/metrics", "Bearer louder") == 200);
}

TEST_CASE("without a token /healthz answers, and /readyz says the state but not the reasons")
{
    running_gateway gateway(echo_configuration("", "admin: { address: 127.0.0.1:0, token: hush }\n"));
    CHECK(body_of(ask_admin(gateway, "/healthz")) == "ok\n");
    CHECK(body_of(ask_admin(gateway, "/healthz", "Authorization: Bearer wrong\r\n")) == "ok\n");
    CHECK(body_of(ask_admin(gateway, "/readyz")) == "{\"ready\":true}\n");
    gateway.app().drain();
    const auto brief = ask_admin(gateway, "/readyz");
    CHECK(status_of(brief) == 503);
    CHECK(body_of(brief) == "{\"ready\":false}\n");
    const auto whole = ask_admin(gateway, "/readyz", "Authorization: Bearer hush\r\n");
    CHECK(status_of(whole) == 503);
    CHECK(body_of(whole).find("draining") != std::string::npos);
}

TEST_CASE("a web page cannot read the admin listener by DNS rebinding: Host must be an address or a known name")
{
    const auto asked = [](running_gateway& gateway, const std::string& path, const std::string& fields) {
        return raw_admin(gateway, "GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + fields + "\r\n");
    };
    running_gateway gateway(echo_configuration());
    for (const char* good :
         {"127.0.0.1", "127.0.0.1:9901", "[::1]:9901", "10.1.2.3", "localhost", "LocalHost:9901", "localhost."}) {
        CAPTURE(good);
        CHECK(status_of(asked(gateway, "/metrics", "Host: " + std::string(good) + "\r\n")) == 200);
    }
    for (const char* bad : {"evil.example", "evil.example:9901", "localhost.evil.example", "127.0.0.1.evil.example",
                            "127.0.0.1, evil", "", "[::1", "127.1"}) {
        CAPTURE(bad);
        const auto refused = asked(gateway, "/metrics", "Host: " + std::string(bad) + "\r\n");
        CHECK(status_of(refused) == 403);
        CHECK(body_of(refused).find("admin.hosts") != std::string::npos);
        CHECK(status_of(asked(gateway, "/nowhere", "Host: " + std::string(bad) + "\r\n")) == 403);
        CHECK(body_of(asked(gateway, "/healthz", "Host: " + std::string(bad) + "\r\n")) == "ok\n");
        CHECK(body_of(asked(gateway, "/readyz", "Host: " + std::string(bad) + "\r\n")) == "{\"ready\":true}\n");
    }
    CHECK(status_of(asked(gateway, "/metrics", "")) == 403);
    CHECK(status_of(asked(gateway, "/metrics", "Host: localhost\r\nHost: evil.example\r\n")) == 403);

    running_gateway with_token(echo_configuration("", "admin: { address: 127.0.0.1:0, token: hush }\n"));
    CHECK(status_of(asked(with_token, "/metrics", "Host: any.name\r\nAuthorization: Bearer hush\r\n")) == 200);
    CHECK(status_of(asked(with_token, "/metrics", "Host: any.name\r\n")) == 401);
}

TEST_CASE("names in admin.hosts are accepted in Host, in any case and with any port, and follow a reload")
{
    const auto hosts = [](const std::string& names) {
        return echo_configuration("", "admin: { address: 127.0.0.1:0, hosts: " + names + " }\n");
    };
    running_gateway gateway(hosts("[ admin.internal, Node-1.example ]"));
    const auto status_for = [&](const std::string& host) {
        return status_of(
            raw_admin(gateway, "GET /metrics HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n\r\n"));
    };
    CHECK(status_for("admin.internal") == 200);
    CHECK(status_for("node-1.EXAMPLE:8443") == 200);
    CHECK(status_for("x.admin.internal") == 403);
    CHECK(status_for("internal") == 403);
    gateway.app().reload(load_configuration(hosts("other.internal")));
    CHECK(status_for("admin.internal") == 403);
    CHECK(status_for("other.internal") == 200);
}

TEST_CASE("too long heads and bodies, and malformed requests, end only their connection")
{
    running_gateway gateway(echo_configuration());
    raw_admin(gateway, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
    raw_admin(gateway, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n");
    raw_admin(gateway, "\x16\x03\x01\x02\x00 nonsense\r\n\r\n");
    CHECK(status_of(ask_admin(gateway, "/healthz")) == 200);
}

TEST_CASE("silent clients, however many, do not keep the health check from an answer")
{
    running_gateway gateway(echo_configuration());
    std::vector<raw_connection> silent;
    for (int i = 0; i < 200; ++i)
        silent.push_back(raw_connection::to(gateway.app().admin_port()));
    CHECK(body_of(ask_admin(gateway, "/healthz")) == "ok\n");
}

TEST_CASE("at the limit of connections the one that is silent for longest is closed, not one that asks")
{
    running_gateway gateway(echo_configuration());
    auto regular = raw_connection::to(gateway.app().admin_port());
    const auto ask = [&] {
        regular.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        return body_of(regular.read_response());
    };
    CHECK(ask() == "ok\n");
    std::vector<raw_connection> silent;
    for (int i = 0; i < 10; ++i) {
        for (int k = 0; k < 30; ++k)
            silent.push_back(raw_connection::to(gateway.app().admin_port()));
        CHECK(ask() == "ok\n");
    }
    silent.front().read_some();
    CHECK(silent.front().was_closed());
}

TEST_CASE("without admin: there is no listener")
{
    raw_upstream upstream(always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    running_gateway gateway(running_gateway::in_front_of(upstream));
    CHECK(gateway.app().admin_port() == 0);
}

TEST_CASE("an address that is taken is an error at start with the address in it")
{
    running_gateway gateway(echo_configuration());
    const auto taken = "127.0.0.1:" + std::to_string(gateway.app().admin_port());
    CHECK_THROWS_WITH_AS(running_gateway(echo_configuration("", "admin: { address: " + taken + " }\n")),
                         doctest::Contains(taken.c_str()), std::system_error);
}
