// The access log of a running gateway: one line per request, whatever its result.
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate;
using namespace headgate::tests;

namespace {

std::string json_to(const log_pipe& pipe) { return "{ path: " + pipe.path() + " }"; }

const std::string get_open = "GET /open/a/../b?q=1 HTTP/1.1\r\nHost: example.com\r\n\r\n";
const std::string get_limited = "GET /limited/x HTTP/1.1\r\nHost: example.com\r\nX-API-Key: me\r\n\r\n";

} // namespace

TEST_CASE("200: path as routed, bytes, route, upstream, no error")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    const auto answer = gateway.ask(get_open);
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["client"] == "127.0.0.1");
    CHECK(line["method"] == "GET");
    CHECK(line["host"] == "example.com");
    CHECK(line["path"] == "/open/b");
    CHECK(line["query"] == "q=1");
    CHECK(line["status"] == 200);
    CHECK(line["bytes_in"] == get_open.size());
    CHECK(line["bytes_out"] == answer.size());
    CHECK(line["route"] == "open");
    CHECK(line["upstream"] == "demo");
    CHECK(line["limit"] == "none");
    CHECK(line["request_id"].get<std::string>().size() == 32);
    CHECK(line["duration_ms"].get<double>() >= 0);
    CHECK(line["duration_ms"].get<double>() < 5000);
    CHECK(line["time"].get<std::string>().size() == 24);
    CHECK_FALSE(line.contains("error"));
    CHECK_FALSE(line.contains("rule"));
}

TEST_CASE("a body counts, in and out, however it is framed")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    const std::string head = "POST /open/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    gateway.ask(head + "5\r\nhello\r\n0\r\n\r\n");
    CHECK(nlohmann::json::parse(pipe.next_line())["bytes_in"] == head.size() + 5);
}

TEST_CASE("429: the verdict and the rule that refused")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    auto client = gateway.connect();
    for (int i = 0; i < 3; ++i) {
        client.send(get_limited);
        CHECK(status_of(client.read_response()) == (i < 2 ? 200 : 429));
    }
    for (int i = 0; i < 2; ++i) {
        const auto passed = nlohmann::json::parse(pipe.next_line());
        CHECK(passed["status"] == 200);
        CHECK(passed["limit"] == "passed");
        CHECK(passed["rule"] == "minute");
        CHECK(passed["used"] == i + 1);
        CHECK(passed["quota"] == 2);
    }
    const auto refused = nlohmann::json::parse(pipe.next_line());
    CHECK(refused["status"] == 429);
    CHECK(refused["limit"] == "refused");
    CHECK(refused["rule"] == "minute");
    CHECK(refused["used"] == 2);
    CHECK(refused["identity"] == "user/header:X-API-Key"); // without its value
    CHECK(refused["key"].get<std::string>().size() == 16);
    CHECK(refused["key"].get<std::string>().find("me") == std::string::npos);
    CHECK(refused["route"] == "limited");
}

TEST_CASE("400: a malformed request has a line, with the fields that could be read and the code")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    gateway.ask(get_open); // no data of an earlier request may appear in the line
    pipe.next_line();
    gateway.ask("GET /x\"y HTTP/1.1\r\nHost : a\r\n\r\n");
    auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 400);
    CHECK(line["error"] == "bad_header");
    CHECK(line["method"] == "GET");
    CHECK(line["path"] == "/x\"y");
    CHECK_FALSE(line.contains("host"));
    CHECK_FALSE(line.contains("route"));
    gateway.ask("\x16\x03\x01 nonsense\r\n\r\n");
    line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 400);
    CHECK_FALSE(line.contains("method"));
    CHECK_FALSE(line.contains("path"));
    gateway.ask("POST /open/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["error"] == "bad_content_length");
    CHECK(line["path"] == "/open/x");
}

TEST_CASE("a head that comes in pieces and is refused late is logged from its current buffer")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    auto client = gateway.connect();
    client.send("GET /long HTTP/1.1\r\nHost: a\r\nX-A: ");
    for (int i = 0; i < 8; ++i)
        client.send(std::string(6000, 'a'));
    client.send("\r\nbroken line\r\n\r\n");
    CHECK(status_of(client.read_response()) == 400);
    CHECK(nlohmann::json::parse(pipe.next_line())["path"] == "/long");
}

TEST_CASE("404, 502: the code, and route and upstream if they were known")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    CHECK(status_of(gateway.ask("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n")) == 404);
    auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["error"] == "no_route");
    CHECK(line["path"] == "/nowhere");
    CHECK_FALSE(line.contains("route"));
    CHECK(status_of(gateway.ask("GET /dead HTTP/1.1\r\nHost: a\r\n\r\n")) == 502);
    line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 502);
    CHECK(line["error"] == "upstream_refused");
    CHECK(line["route"] == "dead");
    CHECK(line["upstream"] == "dead");
    CHECK(line["server"].get<std::string>().starts_with("127.0.0.1:"));
}

TEST_CASE("a forwarded request names its server and has its phases in order")
{
    log_pipe pipe;
    raw_upstream upstream(always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
    running_gateway gateway(running_gateway::in_front_of(upstream, "log: { access: { path: " + pipe.path() + " } }\n"));
    const auto answer = gateway.ask("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["server"] == "127.0.0.1:" + std::to_string(upstream.port()));
    CHECK(line["bytes_out"] == answer.size());
    CHECK(line["connect_ms"].get<double>() <= line["first_byte_ms"].get<double>());
    CHECK(line["first_byte_ms"].get<double>() <= line["duration_ms"].get<double>());
}

TEST_CASE("an answer that the upstream cuts short keeps its status and has an error code")
{
    log_pipe pipe;
    raw_upstream upstream([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhi");
    });
    running_gateway gateway(running_gateway::in_front_of(upstream, "log: { access: { path: " + pipe.path() + " } }\n"));
    gateway.connect(); // a connection without a request has no line
    auto client = gateway.connect();
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    client.read_all();
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 200);
    CHECK(line["error"] == "upstream_truncated");
}

TEST_CASE("a client that leaves before its answer is 499 client_gone")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration(json_to(pipe)));
    auto client = gateway.connect();
    client.send("POST /open/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    client.finish_sending();
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["status"] == 499);
    CHECK(line["error"] == "client_gone");
    CHECK(line["bytes_out"] == 0);
}

TEST_CASE("combined: referer and agent, the body's bytes")
{
    log_pipe pipe;
    running_gateway gateway(echo_configuration("{ path: " + pipe.path() + ", format: combined }"));
    const auto answer = gateway.ask("GET /open/x?y HTTP/1.1\r\nHost: a\r\nReferer: r\"\r\nUser-Agent: t\xe9st\r\n\r\n");
    const auto line = pipe.next_line();
    CHECK(line.starts_with("127.0.0.1 - - ["));
    CHECK(line.ends_with("] \"GET /open/x?y HTTP/1.1\" 200 " + std::to_string(body_of(answer).size()) +
                         " \"r\\x22\" \"t\\xE9st\""));
}

TEST_CASE("a log without a reader loses lines, not requests; the loss is counted")
{
    log_pipe pipe;
    pipe.shrink();
    running_gateway gateway(echo_configuration(json_to(pipe)));
    auto client = gateway.connect();
    const auto request = "GET /open/x?" + std::string(7000, 'q') + " HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::size_t enough = (log_writer::most_pending + 4) * (log_writer::buffer_size / 7000 + 1);
    for (std::size_t i = 0; i < enough; ++i) {
        client.send(request);
        REQUIRE(status_of(client.read_response()) == 200);
    }
    CHECK(metric(gateway, "headgate_access_log_dropped_total") > 0);
    CHECK(metric_at_last(gateway, "headgate_requests_total{route=\"open\",class=\"2xx\"}", enough) == enough);
    CHECK(nlohmann::json::parse(pipe.next_line())["status"] == 200); // the reader finds whole lines
}

TEST_CASE("reopened, switched on and switched off without a restart")
{
    temporary_folder folder;
    const auto path = folder.file("access.log");
    const auto reload = [&](running_gateway& gateway, const std::string& log) {
        gateway.app().reload(load_configuration(echo_configuration(log)));
    };
    running_gateway gateway(echo_configuration("{ path: " + path + " }"));
    gateway.ask(get_open);
    CHECK(nlohmann::json::parse(wait_for_lines(path, 1))["status"] == 200);
    std::filesystem::rename(path, path + ".1");
    gateway.app().reopen_logs();
    gateway.ask(get_open);
    CHECK(nlohmann::json::parse(wait_for_lines(path, 1))["status"] == 200);

    const auto other = folder.file("other.log");
    reload(gateway, "{ path: " + other + ", format: combined }");
    gateway.ask(get_open);
    CHECK(wait_for_lines(other, 1).starts_with("127.0.0.1 - - ["));
    reload(gateway, "{ path: \"off\" }");
    gateway.ask(get_open);
    gateway.app().stop(); // writes the pending lines
    CHECK(std::ranges::count(wait_for_lines(other, 1), '\n') == 1);
}
