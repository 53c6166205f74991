// A reload of listeners and of the admin listener: each change is applied, or the file is refused as a whole.
#include "gateway/restart_needed.hpp"
#include "tests/admin/support.hpp"
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace headgate;
using namespace headgate::tests;

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct test_file
{
    std::string listeners = "{ address: 127.0.0.1:0 }";
    std::string more;
    std::string limit = "100000/minute";
    std::string version = "one"; // the name of the rule, which answers show
    std::string upstream = "echo: true";
    unsigned workers = 2;

    std::string text() const
    {
        return "workers: " + std::to_string(workers) + "\nlisteners: [ " + listeners + " ]\n" + more +
               (more.find("stores:") == std::string::npos ? "stores: { local: { type: memory, max_keys: 1000 } }\n"
                                                          : "") +
               "chains:\n  api:\n    store: local\n    rules: [ { name: " + version +
               ", key: client_ip, algorithm: fixed_window, "
               "align: first, limit: " +
               limit + " } ]\nupstreams: { up: { " + upstream +
               " }, echo: { echo: true } }\nroutes:\n  - { name: echo, match: { path: /echo }, upstream: echo }\n"
               "  - name: all\n    chains: [ api ]\n    upstream: up\n";
    }
};

std::string at(std::uint16_t port) { return "{ address: 127.0.0.1:" + std::to_string(port) + " }"; }

// An upstream that answers when it may.
struct slow_upstream
{
    std::mutex gate;
    raw_upstream server{[this](raw_upstream& self, raw_connection& from) {
        self.read_request(from);
        std::lock_guard open(gate);
        from.send(ok);
        self.read_request(from);
    }};
    std::string text() const { return "servers: [ 127.0.0.1:" + std::to_string(server.port()) + " ]"; }
};

std::string version_of(const std::string& answer)
{
    const auto policy = field_of(answer, "RateLimit-Policy");
    return policy.substr(policy.find('"') + 1, policy.rfind('"') - 1);
}

bool is_refused(std::uint16_t port)
{
    try {
        auto client = raw_connection::to(port);
        client.send(get);
        return client.read_response().empty(); // an answered connection would stay open
    } catch (const std::exception&) {
        return true;
    }
}

// Waits until new connections to this port are answered by this version. Each worker adopts a reload by itself: asks so
// often that all of them answer, most likely.
void wait_for(std::uint16_t port, const std::string& version)
{
    CHECK(eventually([&] {
        for (int i = 0; i < 16; ++i) {
            auto client = raw_connection::to(port);
            client.send(get);
            if (version_of(client.read_response()) != version)
                return false;
        }
        return true;
    }));
}

std::uint16_t free_port()
{
    const running_gateway any(test_file().text());
    return any.port();
}

} // namespace

TEST_CASE("reload: a new listener is opened, one that stays keeps its connections")
{
    test_file file;
    running_gateway gateway(file.text());
    const auto first = gateway.port();
    auto open = gateway.connect();
    open.send(get);
    CHECK(status_of(open.read_response()) == 200);

    file.listeners = "{ address: 127.0.0.1:0 }, { address: 127.0.0.1:0 }";
    file.version = "two";
    gateway.reload(file.text());
    REQUIRE(gateway.ports().size() == 2);
    CHECK(gateway.ports().front() == first);
    wait_for(gateway.ports().back(), "two");
    wait_for(first, "two");
    open.send(get);
    CHECK(status_of(open.read_response()) == 200);
}

TEST_CASE("reload: a removed listener closes its idle connections, and finishes requests in flight")
{
    slow_upstream upstream;
    test_file file;
    file.workers = 1;
    file.listeners = "{ address: 127.0.0.1:0 }, { address: 127.0.0.1:0 }";
    file.upstream = upstream.text();
    running_gateway gateway(file.text());
    const auto removed = gateway.ports().front(), kept = gateway.ports().back();
    upstream.gate.lock();
    auto busy = raw_connection::to(removed);
    busy.send(get);
    upstream.server.wait_for_received(1);
    auto idle = raw_connection::to(removed), idle_elsewhere = raw_connection::to(kept);
    for (auto* each : {&idle, &idle_elsewhere}) { // a first request, so that they are accepted
        each->send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
        CHECK(status_of(each->read_response()) == 200);
    }

    file.listeners = at(kept);
    gateway.reload(file.text());
    CHECK(idle.read_all() == "");
    CHECK(idle.was_closed());
    CHECK(eventually([&] { return is_refused(removed); }));
    upstream.gate.unlock();
    const auto last = busy.read_all();
    CHECK(status_of(last) == 200);
    CHECK(field_of(last, "Connection") == "close");
    CHECK(busy.was_closed());
    idle_elsewhere.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(status_of(idle_elsewhere.read_response()) == 200);
    CHECK(gateway.ports() == std::vector{kept});
}

TEST_CASE("reload: limits of a listener change for the next request of an open connection, not for one in flight")
{
    test_file file;
    file.workers = 1;
    file.listeners = "{ address: 127.0.0.1:0, limits: { body: 1KiB } }";
    running_gateway gateway(file.text());
    const auto head = std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n");
    const std::string body(600, 'b');
    auto open = gateway.connect(), in_flight = gateway.connect();
    open.send(head + body);
    CHECK(status_of(open.read_response()) == 200);
    in_flight.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n" + body.substr(0, 100));
    CHECK(eventually([&] { return in_flight.has_arrived(); }));
    // The worker has read the head when it answers another request that came later.
    CHECK(status_of(gateway.ask(get)) == 200);

    file.listeners = "{ address: 127.0.0.1:0, limits: { body: 500B } }";
    file.version = "two";
    gateway.reload(file.text());
    wait_for(gateway.port(), "two");
    open.send(head);
    CHECK(status_of(open.read_response()) == 413);
    in_flight.send(body.substr(100) + "\r\n0\r\n\r\n");
    CHECK(status_of(in_flight.read_response()) == 200);
}

TEST_CASE("reload: timeouts of a listener change for connections that become idle after it")
{
    test_file file;
    file.workers = 1;
    running_gateway gateway(file.text());
    auto open = gateway.connect();
    open.send(get);
    CHECK(status_of(open.read_response()) == 200);
    file.listeners = "{ address: 127.0.0.1:0, timeouts: { idle: 100ms } }";
    file.version = "two";
    gateway.reload(file.text());
    wait_for(gateway.port(), "two");
    open.send(get);
    CHECK(version_of(open.read_response()) == "two");
    open.read_all(); // the default would be a minute, more than this waits
    CHECK(open.was_closed());
}

TEST_CASE("reload: connection caps follow, and connections that are open count")
{
    test_file file;
    file.workers = 1;
    running_gateway gateway(file.text());
    auto open = gateway.connect();
    open.send(get);
    CHECK(status_of(open.read_response()) == 200);
    for (const std::string cap : {"max_connections_per_address: 1", "max_connections: 1"}) {
        CAPTURE(cap);
        file.listeners = "{ address: 127.0.0.1:0, " + cap + " }";
        gateway.reload(file.text());
        CHECK(eventually([&] { return is_refused(gateway.port()); }));
        open.send(get);
        CHECK(status_of(open.read_response()) == 200);
        file.listeners = "{ address: 127.0.0.1:0 }";
        gateway.reload(file.text());
        CHECK(eventually([&] { return !is_refused(gateway.port()); }));
    }
}

TEST_CASE("reload: an address that cannot be bound refuses the whole file")
{
    const temporary_folder folder;
    running_gateway other(test_file().text());
    test_file file;
    file.limit = "3/minute";
    file.more = "admin: { address: 127.0.0.1:0, token: hush }\n";
    running_gateway gateway(file.text());
    const auto port = gateway.port(), admin_port = gateway.app().admin_port();
    CHECK(status_of(gateway.ask(get)) == 200);
    auto wrong = file;
    wrong.version = "two";
    wrong.limit = "100000/minute";
    wrong.more = "admin: { address: 127.0.0.2:0 }\n";
    std::string why;
    SUBCASE("a listener")
    {
        wrong.listeners += ", { address: 127.0.0.1:0 }, " + at(other.port());
        why = "another process listens there";
    }
    SUBCASE("the admin listener")
    {
        wrong.more = "admin: { address: 127.0.0.1:" + std::to_string(other.port()) + " }\n";
        why = "another process listens there";
    }
    SUBCASE("an address that overlaps one of the gateway's own")
    {
        wrong.listeners = "{ address: 0.0.0.0:" + std::to_string(port) + " }";
        why = "this gateway itself listens on 127.0.0.1:" + std::to_string(port);
    }
    SUBCASE("the access log")
    {
        wrong.listeners += ", { address: 127.0.0.1:0 }";
        wrong.more += "log: { access: { path: " + folder.file("no/such/folder/log") + " } }\n";
        why = "cannot open the access log";
    }
    SUBCASE("a limit that Redis cannot count")
    {
        wrong.more += "stores:\n  local: { type: memory, max_keys: 1000 }\n  shared: { type: redis, url: "
                      "redis://127.0.0.1:1, on_outage: open }\n";
        auto text = wrong.text();
        text.replace(
            text.find("upstreams:"), 0,
            "  z:\n    store: shared\n    rules: [ { name: slow, key: client_ip, algorithm: token_bucket, limit: "
            "1/month, burst: 2000 } ]\n");
        CHECK_THROWS_WITH(gateway.reload(text), doctest::Contains("in Redis a bucket must fill up within 140 years"));
        why = "in Redis";
    }
    if (why != "in Redis")
        CHECK_THROWS_WITH(gateway.reload(wrong.text()), doctest::Contains(why.c_str()));
    CHECK(gateway.ports() == std::vector{port});
    CHECK(gateway.app().admin_port() == admin_port);
    CHECK(status_of(ask_admin(gateway, "/metrics")) == 401);
    for (const unsigned expected : {200U, 200U, 429U}) {
        const auto said = gateway.ask(get);
        CHECK(status_of(said) == expected);
        CHECK(version_of(said) == "one");
    }
}

TEST_CASE("reload: the admin listener moves, and its former address is never without its token")
{
    const auto old_port = free_port();
    test_file file;
    file.more = "admin: { address: 127.0.0.1:" + std::to_string(old_port) + ", token: hush }\n";
    running_gateway gateway(file.text());
    const auto ask_old = [&] {
        auto client = raw_connection::to(old_port);
        client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        return status_of(client.read_all());
    };
    auto idle = raw_connection::to(old_port);
    idle.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(body_of(idle.read_response()) == "ok\n");
    CHECK(ask_old() == 401);

    file.more = "admin: { address: 127.0.0.1:0 }\n";
    gateway.reload(file.text());
    CHECK(gateway.app().admin_port() != old_port);
    CHECK(status_of(ask_admin(gateway, "/metrics")) == 200);
    bool was_open = false;
    CHECK(eventually([&] {
        try {
            was_open = was_open || ask_old() == 200;
            return false; // it is closing
        } catch (const std::exception&) {
            return true; // nothing listens there
        }
    }));
    CHECK(!was_open);
    CHECK(idle.read_all() == "");
    CHECK(idle.was_closed());

    file.more = "";
    gateway.reload(file.text());
    CHECK(gateway.app().admin_port() == 0);
    file.more = "admin: { address: 127.0.0.1:" + std::to_string(old_port) + ", token: louder }\n";
    gateway.reload(file.text());
    CHECK(gateway.app().admin_port() == old_port);
    CHECK(status_of(ask_admin(gateway, "/metrics")) == 401);
    CHECK(status_of(ask_admin(gateway, "/metrics", "Authorization: Bearer louder\r\n")) == 200);
}

TEST_CASE("reload: listeners that come and go leave nothing open")
{
    test_file file;
    running_gateway gateway(file.text());
    const auto two = "{ address: 127.0.0.1:0 }, { address: 127.0.0.1:0 }";
    const auto reload = [&](const std::string& listeners, const std::string& admin) {
        file.listeners = listeners;
        file.more = admin;
        gateway.reload(file.text());
    };
    reload("{ address: 127.0.0.1:0 }", "");
    wait_for(gateway.port(), "one");
    const auto descriptors = open_descriptors();
    for (int i = 0; i < 20; ++i) {
        reload(two, "admin: { address: 127.0.0.1:0 }\n");
        reload("{ address: 127.0.0.1:0 }", "");
    }
    CHECK(eventually([&] {
        gateway.reload(file.text()); // retired admin listeners end by themselves, and are forgotten by the next reload
        return open_descriptors() <= descriptors;
    }));
}

TEST_CASE("reload: the path of a snapshot follows")
{
    const temporary_folder folder;
    test_file file;
    const auto stored = [&](const std::string& name) {
        return "stores: { local: { type: memory, max_keys: 1000, snapshot: { path: " + folder.file(name) +
               ", interval: 1h } } }\n";
    };
    file.more = stored("before");
    file.limit = "2/minute";
    {
        running_gateway gateway(file.text());
        CHECK(status_of(gateway.ask(get)) == 200);
        file.more = stored("after");
        gateway.reload(file.text());
        CHECK(std::filesystem::exists(folder.file("before")));
        CHECK(status_of(gateway.ask(get)) == 200);
    }
    CHECK(std::filesystem::exists(folder.file("after")));
    running_gateway again(file.text());
    CHECK(status_of(again.ask(get)) == 429);
}

TEST_CASE("reload: only workers and the sizes of stores wait for a restart, with a warning that names the key")
{
    auto next = load_configuration(test_file().text());
    store_map stores;
    stores["local"] = std::make_unique<limiter::memory_store>(1000);
    stores["removed"] = std::make_unique<limiter::memory_store>(5);
    CHECK(restart_needed(next, 2, stores).empty());
    next.workers = 3;
    next.stores["local"].max_keys = 2000;
    next.stores["new"].max_keys = 7;
    std::string all;
    for (const auto& warning : restart_needed(next, 2, stores)) {
        CHECK(warning.level == config::severity::warning);
        all += to_string(warning) + "\n";
    }
    CHECK(all ==
          "test.yaml:1:10: warning: workers: 3 takes effect at the next restart; 2 stays in use\n"
          "test.yaml:3:44: warning: stores.local.max_keys: 2000 takes effect at the next restart; 1000 stays in use\n");
}
