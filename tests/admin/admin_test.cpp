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
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
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

TEST_CASE("other paths are 404, other methods 405, HEAD has no body")
{
    running_gateway gateway(echo_configuration());
    CHECK(status_of(ask_admin(gateway, "/")) == 404);
    CHECK(status_of(ask_admin(gateway, "/healthz/")) == 404);
    const auto post =
        raw_admin(gateway, "POST /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
    CHECK(status_of(post) == 405);
    CHECK(field_of(post, "Allow") == "GET, HEAD");
    const auto head = raw_admin(gateway, "HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK(status_of(head) == 200);
    CHECK(field_of(head, "Content-Length") == "3");
    CHECK(body_of(head).empty());
}

TEST_CASE("a connection may send several requests")
{
    running_gateway gateway(echo_configuration());
    auto client = raw_connection::to(gateway.app().admin_port());
    for (int i = 0; i < 3; ++i) {
        client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(body_of(client.read_response()) == "ok\n");
    }
}

TEST_CASE("with a configured token every path requires it, and a reload changes it")
{
    const std::string with_token = "admin: { address: 127.0.0.1:0, token: hush }\n";
    running_gateway gateway(echo_configuration("", with_token));
    const auto bearer = [&](const std::string& path, const std::string& value) {
        return status_of(ask_admin(gateway, path, "Authorization: " + value + "\r\n"));
    };
    for (const char* path : {"/healthz", "/readyz", "/metrics", "/nowhere"}) {
        CAPTURE(path);
        const auto refused = ask_admin(gateway, path);
        CHECK(status_of(refused) == 401);
        CHECK(field_of(refused, "WWW-Authenticate") == "Bearer");
        CHECK(body_of(refused).find("hush") == std::string::npos);
    }
    CHECK(bearer("/healthz", "Bearer hush") == 200);
    CHECK(bearer("/healthz", "bearer hush") == 200);
    for (const char* wrong : {"hush", "Bearer", "Bearer ", "Bearer hus", "Bearer hushh", "Bearer Hush", "Basic hush"}) {
        CAPTURE(wrong);
        CHECK(bearer("/healthz", wrong) == 401);
    }
    gateway.app().reload(
        load_configuration(echo_configuration("", "admin: { address: 127.0.0.1:0, token: louder }\n")));
    CHECK(bearer("/healthz", "Bearer hush") == 401);
    CHECK(bearer("/healthz", "Bearer louder") == 200);
}

TEST_CASE("too long heads and bodies, and malformed requests, end only their connection")
{
    running_gateway gateway(echo_configuration());
    raw_admin(gateway, "GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
    raw_admin(gateway, "POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    raw_admin(gateway, "\x16\x03\x01\x02\x00 nonsense\r\n\r\n");
    CHECK(status_of(ask_admin(gateway, "/healthz")) == 200);
}

TEST_CASE("many silent clients do not block other clients for long")
{
    running_gateway gateway(echo_configuration());
    std::vector<raw_connection> silent;
    for (int i = 0; i < 63; ++i)
        silent.push_back(raw_connection::to(gateway.app().admin_port()));
    CHECK(status_of(ask_admin(gateway, "/healthz")) == 200);
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
