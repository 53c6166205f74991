// Requests in flight and refunds, while Redis is silent, connections are cut, a master is replaced or the configuration
// is reloaded: what has ended is free soon after Redis answers again, and what is in flight stays counted.
#include "limiter/redis/fingerprint.hpp"
#include "limiter/redis/key_value.hpp"
#include "tests/gateway_redis/support.hpp"
#include "tests/redis_client/cluster_group.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace headgate::tests;
using headgate::testing::cluster_group;
namespace redis = headgate::limiter::redis;

namespace {

const std::string five = "      - { name: parallel, key: user, algorithm: concurrency, limit: 5 }\n";
const std::string quick = "timeout: 100ms, on_outage: open, breaker: { failures: 100, probe_interval: 50ms }";

std::string ask_one(const running_gateway& gateway)
{
    return gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nConnection: close\r\n\r\n");
}

// Returns whether so many of the five slots are left beside that of this request.
bool are_left(const running_gateway& gateway, int n)
{
    return field_of(ask_one(gateway), "RateLimit").find("\"parallel\";r=" + std::to_string(n)) != std::string::npos;
}

double pending(running_gateway& gateway)
{
    return metric(gateway, "headgate_redis_pending_corrections{store=\"shared\"}");
}

// Checks that all slots but those of requests in flight become free, although requests go on, and soon.
void check_free_soon(const running_gateway& gateway, int in_flight = 0)
{
    const auto from = std::chrono::steady_clock::now();
    CHECK(eventually([&] { return are_left(gateway, 4 - in_flight); }));
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - from);
    MESSAGE("free after ", took.count(), " ms");
}

// An upstream that answers requests for / at once, and others when it may.
class held_upstream
{
public:
    ~held_upstream() { release(); }
    void release()
    {
        std::lock_guard guard(lock_);
        may_answer_ = true;
        changed_.notify_all();
    }
    std::string text() const { return "up: { servers: [ \"127.0.0.1:" + std::to_string(up.port()) + "\" ] }"; }

private:
    void serve(raw_upstream& self, raw_connection& client)
    {
        for (auto head = self.read_request(client); !head.empty(); head = self.read_request(client)) {
            std::unique_lock guard(lock_);
            changed_.wait(guard, [&] { return may_answer_ || head.starts_with("GET / "); });
            guard.unlock();
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    bool may_answer_ = false;

public:
    raw_upstream up{[this](raw_upstream& self, raw_connection& client) { serve(self, client); }};
};

// Requests that the upstream holds.
struct held_requests
{
    held_requests(const running_gateway& gateway, held_upstream& at, std::size_t n)
    {
        for (std::size_t i = 0; i < n; ++i) {
            connections.push_back(gateway.connect());
            connections.back().send("GET /held HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\n\r\n");
        }
        REQUIRE(eventually([&] { return count(at.up.received(), "GET /held") == n; }));
    }
    void read_answers()
    {
        for (auto& each : connections)
            CHECK(status_of(each.read_response()) == 200);
    }
    std::vector<raw_connection> connections;
};

// Connections to Redis that break when a correction is sent.
class breaking_relay
{
public:
    enum class corrections
    {
        pass,
        are_dropped,     // the connection ends before Redis gets them
        have_no_replies, // the connection ends after Redis has done them
    };
    explicit breaking_relay(const redis_server& to) : redis_port_(static_cast<std::uint16_t>(to.port())) {}
    std::uint16_t port() const { return relay_.port(); }
    std::atomic<corrections> mode{corrections::pass};
    std::atomic<int> broken{0};

private:
    void serve(raw_connection& client)
    {
        auto server = raw_connection::to(redis_port_);
        std::atomic<bool> is_muted{false};
        std::atomic<int> replies{0};
        std::thread back([&] {
            for (auto got = server.read_some(); !got.empty(); got = server.read_some()) {
                if (!is_muted)
                    client.send(got);
                ++replies;
            }
        });
        for (auto sent = client.read_some(); !sent.empty(); sent = client.read_some()) {
            const bool breaks = mode != corrections::pass && sent.find(redis::correct_script().sha1) != sent.npos;
            const bool is_sent = !breaks || mode == corrections::have_no_replies;
            is_muted = breaks;
            const int before = replies;
            if (is_sent)
                server.send(sent);
            if (!breaks)
                continue;
            CHECK(eventually([&] { return !is_sent || replies > before; }));
            ++broken;
            client.finish_sending();
            break;
        }
        server.finish_sending();
        back.join();
    }
    std::uint16_t redis_port_;
    raw_upstream relay_{[this](raw_upstream&, raw_connection& client) { serve(client); }};
};

// Returns the name of the one key of the chain; empty when the server does not have it.
std::string key_in(const redis_server& server)
{
    return headgate::testing::ask_server(server, {"KEYS", "hg:1:{api/user:*one}"});
}

std::string url_of(const breaking_relay& relay) { return "redis://127.0.0.1:" + std::to_string(relay.port()); }

} // namespace

TEST_CASE("redis: requests whose limits timed out hold no slots when Redis answers again")
{
    redis_server server;
    running_gateway gateway(configuration(server, {.rules = five, .store_options = quick, .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    CHECK(eventually([&] { return are_left(gateway, 4); }));
    server.pause();
    CHECK(ask_for(gateway, 4, "one").passed == 4); // open; Redis will read these calls
    server.resume();
    check_free_soon(gateway);
    CHECK(metric(gateway, "headgate_redis_timeouts_total{store=\"shared\"}") >= 4);
}

TEST_CASE("redis: slots of lost calls are freed, those of requests that go on are not")
{
    redis_server server;
    held_upstream up;
    running_gateway gateway(
        configuration(server, {.rules = five, .store_options = quick, .upstream = up.text(), .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    held_requests two(gateway, up, 2);
    server.pause();
    std::vector<raw_connection> lost;
    for (int i = 0; i < 3; ++i) {
        lost.push_back(gateway.connect());
        lost.back().send("GET /lost HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\n\r\n");
    }
    REQUIRE(eventually([&] { return count(up.up.received(), "GET /lost") == 3; })); // they passed uncounted
    server.resume();
    REQUIRE(wait_until_connected(gateway));
    check_free_soon(gateway, 2);
    CHECK(eventually([&] { return pending(gateway) == 0; }));
    CHECK(are_left(gateway, 2));
    up.release();
}

TEST_CASE("redis: requests that end while the connection breaks are free again")
{
    for (const auto fault : {breaking_relay::corrections::are_dropped, breaking_relay::corrections::have_no_replies}) {
        CAPTURE(static_cast<int>(fault));
        redis_server server;
        breaking_relay relay(server);
        held_upstream up;
        running_gateway gateway(configuration(
            url_of(relay),
            {.rules = five, .store_options = "timeout: 5s, on_outage: open", .upstream = up.text(), .workers = 1}));
        REQUIRE(wait_until_connected(gateway));
        CHECK(eventually([&] { return are_left(gateway, 4); })); // an earlier end has made the script known
        held_requests four(gateway, up, 4);
        relay.mode = fault;
        up.release();
        four.read_answers();
        CHECK(eventually([&] { return relay.broken > 0; }));
        relay.mode = breaking_relay::corrections::pass;
        check_free_soon(gateway);
        CHECK(metric(gateway, "headgate_redis_lost_corrections_total{store=\"shared\"}") == 0);
    }
}

TEST_CASE("redis: a refund whose call or reply is lost is done once")
{
    for (const auto fault : {breaking_relay::corrections::are_dropped, breaking_relay::corrections::have_no_replies}) {
        CAPTURE(static_cast<int>(fault));
        redis_server server;
        breaking_relay relay(server);
        std::atomic<bool> is_broken{false};
        raw_upstream up([&](raw_upstream& self, raw_connection& client) {
            while (!self.read_request(client).empty())
                client.send(is_broken ? "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"
                                      : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
        const std::string rule = "      - { name: hour, key: user, algorithm: fixed_window, align: first, limit: "
                                 "1000/hour, outcome: { refund: [ 5xx ] } }\n";
        running_gateway gateway(configuration(
            url_of(relay), {.rules = rule,
                            .store_options = "timeout: 5s, on_outage: open",
                            .upstream = "up: { servers: [ \"127.0.0.1:" + std::to_string(up.port()) + "\" ] }",
                            .workers = 1}));
        REQUIRE(wait_until_connected(gateway));
        is_broken = true;
        CHECK(ask_for(gateway, 1, "one").other == 1);
        CHECK(eventually([&] { // the refund is done, its script known, and its mark deleted
            const auto stats = headgate::testing::ask_server(server, {"INFO", "commandstats"});
            return stats.find("cmdstat_del:") != std::string::npos;
        }));
        is_broken = false;
        CHECK(ask_for(gateway, 4, "one").passed == 4);
        is_broken = true;
        relay.mode = fault;
        CHECK(ask_for(gateway, 1, "one").other == 1);
        CHECK(eventually([&] { return metric(gateway, "headgate_redis_failures_total{store=\"shared\"}") == 1; }));
        relay.mode = breaking_relay::corrections::pass;
        is_broken = false;
        CHECK(eventually([&] { return pending(gateway) == 0; }));
        REQUIRE(wait_until_connected(gateway));
        CHECK(field_of(ask_one(gateway), "RateLimit").find("\"hour\";r=995") != std::string::npos);
        CHECK(relay.broken == 1);
        CHECK(metric(gateway, "headgate_redis_lost_corrections_total{store=\"shared\"}") == 0);
    }
}

TEST_CASE("redis cluster: requests that end during a failover are free when the next master answers")
{
    cluster_group group(3, 3);
    std::string url = "redis+cluster://";
    for (std::size_t i = 0; i < group.nodes.size(); ++i)
        url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(group.nodes[i]->port());
    held_upstream up;
    running_gateway gateway(configuration(
        url, {.rules = five, .store_options = "timeout: 500ms, on_outage: open", .upstream = up.text(), .workers = 1}));
    REQUIRE(wait_until_connected(gateway));
    held_requests all(gateway, up, 5);
    CHECK(ask_for(gateway, 1, "one").refused == 1);
    const auto has_key = [](const auto& node) { return key_in(*node) != ""; };
    const auto masters = group.nodes.begin() + 3;
    const auto its_master = std::find_if(group.nodes.begin(), masters, has_key);
    REQUIRE(its_master != masters);
    (*its_master)->stop();
    up.release();
    all.read_answers();
    check_free_soon(gateway);
}

TEST_CASE("redis: a request that ends behind a reload does not convert its key back to the former rules")
{
    redis_server server;
    held_upstream up;
    const auto with = [&](const std::string& limit) {
        const auto day = "      - { name: day, key: user, algorithm: fixed_window, limit: " + limit + " }\n";
        return configuration(server, {.rules = day + five, .upstream = up.text(), .workers = 1});
    };
    running_gateway gateway(with("100/day"));
    REQUIRE(wait_until_connected(gateway));
    held_requests held(gateway, up, 2);
    gateway.reload(with("300/day"));
    const auto used = [&] { // of the day, this request included
        const auto fields = field_of(ask_one(gateway), "RateLimit");
        const auto at = fields.find("\"day\";r=");
        REQUIRE(at != std::string::npos);
        return 300 - std::stoi(fields.substr(at + 8));
    };
    REQUIRE(eventually([&] { return used() < 200; })); // the new limit holds
    int before = 0;
    while (before < 200)
        before = used();
    up.release();
    held.read_answers();
    check_free_soon(gateway);
    CHECK(used() > before);
}

TEST_CASE("redis: requests in flight stay counted over a reload that changes the store, and are free when they end")
{
    redis_server server;
    held_upstream up;
    const auto with = [&](const std::string& options) {
        return configuration(server, {.rules = five, .store_options = options, .upstream = up.text(), .workers = 1});
    };
    running_gateway gateway(with("timeout: 5s, on_outage: open"));
    REQUIRE(wait_until_connected(gateway));
    held_requests all(gateway, up, 5);
    headgate::testing::client_loop direct(headgate::testing::options_for(server));
    REQUIRE(direct.run_until([&] { return direct.is_ready(); }));
    const auto expires = [&] { // when the slots end that are not renewed
        const auto bytes = direct.ask({"GET", key_in(server)});
        const auto written_under = redis::fingerprint_in(bytes).value();
        const redis::detached_rules rules(
            redis::parse_rules(direct.ask({"GET", redis::rules_key(written_under)})).value());
        const auto value = redis::decode(rules.packed(), bytes).value();
        REQUIRE(value.rules[0].holders.size() == 1);
        CHECK(value.rules[0].holders[0].count == 5);
        return value.rules[0].holders[0].expires;
    };
    const auto before = expires();
    gateway.reload(with("timeout: 4s, on_outage: open"));
    // The new connection renews them at once; later every 15 seconds.
    CHECK(eventually([&] { return expires() > before; }));
    CHECK(ask_for(gateway, 1, "one").refused == 1);
    up.release();
    all.read_answers();
    check_free_soon(gateway);
}
