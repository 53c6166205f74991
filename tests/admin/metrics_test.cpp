#include "tests/admin/support.hpp"

#include <doctest/doctest.h>

#include <set>
#include <sstream>

using namespace headgate;
using namespace headgate::tests;

namespace {

// A request is counted before its log line is written.
void ask_and_wait(running_gateway& gateway, log_pipe& pipe, const std::string& request)
{
    gateway.ask(request);
    REQUIRE(!pipe.next_line().empty());
}
std::string get(const std::string& path)
{
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\nX-API-Key: me\r\nConnection: close\r\n\r\n";
}
std::set<std::string> series_of(running_gateway& gateway)
{
    std::set<std::string> all;
    std::istringstream lines(body_of(ask_admin(gateway, "/metrics")));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('#'))
            all.insert(line.substr(0, line.rfind(' ')));
    }
    return all;
}

} // namespace

TEST_CASE("the numbers match the requests")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration("{ path: " + pipe.path() + " }"));
    for (int i = 0; i < 3; ++i)
        ask_and_wait(gateway, pipe, get("/open/x"));
    for (int i = 0; i < 5; ++i)
        ask_and_wait(gateway, pipe, get("/limited/x")); // two are admitted
    ask_and_wait(gateway, pipe, get("/dead"));
    ask_and_wait(gateway, pipe, get("/nowhere"));
    ask_and_wait(gateway, pipe, "nonsense\r\n\r\n");

    const auto shown = [&](const std::string& series) { return metric(gateway, "headgate_" + series); };
    CHECK(shown("requests_total{route=\"open\",class=\"2xx\"}") == 3);
    CHECK(shown("requests_total{route=\"limited\",class=\"2xx\"}") == 2);
    CHECK(shown("requests_total{route=\"limited\",class=\"4xx\"}") == 3);
    CHECK(shown("requests_total{route=\"dead\",class=\"5xx\"}") == 1);
    CHECK(shown("requests_total{route=\"(none)\",class=\"4xx\"}") == 2);
    CHECK(shown("limited_total{route=\"limited\",rule=\"minute\"}") == 3);
    CHECK(shown("request_duration_seconds_count{route=\"limited\"}") == 5);
    CHECK(shown("request_duration_seconds_bucket{route=\"limited\",le=\"+Inf\"}") == 5);
    CHECK(shown("request_duration_seconds_sum{route=\"limited\"}") > 0);
    CHECK(shown("upstream_failures_total{upstream=\"dead\"}") >= 1);
    CHECK(shown("upstream_failures_total{upstream=\"demo\"}") == 0);
    CHECK(shown("connections_accepted_total") == 11);
    CHECK(shown("connections_refused_total") == 0);
    CHECK(shown("store_keys{store=\"local\"}") == 1);
    CHECK(shown("store_shared_takes_total{store=\"local\"}") == 0);
    CHECK(shown("access_log_dropped_total") == 0);
    CHECK(shown("workers") == 1);
    CHECK(shown("build_info{version=\"" HEADGATE_VERSION "\"}") == 1);
}

TEST_CASE("no client can create a series: labels are configured names only")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration("{ path: " + pipe.path() + " }"));
    const auto before = series_of(gateway);
    for (int i = 0; i < 100; ++i) {
        const auto name = std::to_string(i * 7919);
        const auto rest = ".example.com\r\nX-API-Key: " + name + "\r\nConnection: close\r\n\r\n";
        gateway.ask("GET /" + name + " HTTP/1.1\r\nHost: " + name + rest);
        gateway.ask("X" + name + " /limited/" + name + " HTTP/1.1\r\nHost: a" + rest);
    }
    for (int i = 0; i < 200; ++i)
        REQUIRE(!pipe.next_line().empty());
    CHECK(series_of(gateway) == before);
}

TEST_CASE("histogram: the last bucket equals the count, which equals the number of requests")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration("{ path: " + pipe.path() + " }"));
    for (int i = 0; i < 10; ++i)
        ask_and_wait(gateway, pipe, get("/open/x"));
    std::istringstream lines(body_of(ask_admin(gateway, "/metrics")));
    double last = 0;
    std::size_t buckets = 0;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("headgate_request_duration_seconds_bucket{route=\"open\""))
            continue;
        const auto count = std::stod(line.substr(line.rfind(' ')));
        CHECK(count >= last);
        last = count;
        ++buckets;
    }
    CHECK(buckets == 15);
    CHECK(last == 10);
}

TEST_CASE("connections: open ones are active while a request is answered, idle otherwise")
{
    raw_upstream upstream([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.read_some(); // until the gateway closes the connection
    });
    running_gateway gateway(running_gateway::in_front_of(upstream, "admin: { address: 127.0.0.1:0 }\n"));
    auto busy = gateway.connect();
    busy.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    upstream.wait_for_received(1);
    const std::string active = "headgate_connections{state=\"active\"}";
    CHECK(metric_at_last(gateway, active, 1) == 1);
    CHECK(metric_at_last(gateway, "headgate_upstream_connections{upstream=\"up\",state=\"active\"}", 1) == 1);
    busy.reset();
    CHECK(metric_at_last(gateway, active, 0) == 0);
    CHECK(metric_at_last(gateway, "headgate_requests_total{route=\"all\",class=\"none\"}", 1) == 1);
}

TEST_CASE("a reload keeps the counts of routes that stay, and drops those of removed routes")
{
    log_pipe pipe;
    const auto log = "{ path: " + pipe.path() + " }";
    running_gateway gateway(echo_configuration(log));
    ask_and_wait(gateway, pipe, get("/open/x"));
    ask_and_wait(gateway, pipe, get("/limited/x"));
    auto text = echo_configuration(log);
    text.replace(text.find("name: open"), 10, "name: free");
    gateway.app().reload(load_configuration(text));
    ask_and_wait(gateway, pipe, get("/open/x"));
    CHECK(metric(gateway, "headgate_requests_total{route=\"free\",class=\"2xx\"}") == 1);
    CHECK(metric(gateway, "headgate_requests_total{route=\"open\",class=\"2xx\"}") == -1);
    CHECK(metric(gateway, "headgate_requests_total{route=\"limited\",class=\"2xx\"}") == 1);
    CHECK(metric(gateway, "headgate_config_reloads_total{result=\"applied\"}") == 1);
}
