// Refusals and quota fields, through a real listener: dialects, the operator's own bodies, the upstream's fields,
// jitter and explanations (L5, C13).
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

using namespace headgate::tests;

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// Admits two requests per hour. `answers` are the lines of the general `answers`, `route` further lines of the route.
std::string two_an_hour(const std::string& answers, const std::string& route = "", const std::string& more = "")
{
    return "chains:\n  api:\n    store: local\n    rules:\n"
           "      - { name: hourly, key: [route], algorithm: fixed_window, limit: 2/hour }\n"
           "      - { name: quiet, key: [route], algorithm: fixed_window, limit: 1/hour, mode: shadow }\n"
           "answers: { " +
           answers + " }\n" + more + "routes:\n  - { name: all, upstream: up, chains: [ api ]" + route + " }\n";
}

// The third answer.
std::string refusal(const std::string& answers, const std::string& request = get, const std::string& route = "")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), two_an_hour(answers, route)));
    gateway.ask(get);
    gateway.ask(get);
    const auto result = gateway.ask(request);
    CHECK(up.requests().size() == 2);
    return result;
}

std::string problem_of(const std::string& yaml)
{
    try {
        running_gateway gateway(yaml);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

class temporary_file
{
public:
    explicit temporary_file(const std::string& name)
        : path_((std::filesystem::temp_directory_path() / ("headgate-" + std::to_string(::getpid()) + "-" + name)))
    {}
    ~temporary_file() { std::filesystem::remove(path_); }
    temporary_file(const temporary_file&) = delete;
    const std::string& path() const { return path_; }
    void write(const std::string& text) const { std::ofstream(path_, std::ios::trunc) << text; }

private:
    std::string path_;
};

} // namespace

TEST_CASE("answers: each dialect has its own fields, on answers and on refusals")
{
    struct row
    {
        std::string dialect;
        std::vector<std::string> has;
    };
    const std::vector<row> rows = {
        {"ietf", {"RateLimit", "RateLimit-Policy"}},
        {"ietf-triple", {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}},
        {"x-ratelimit", {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}},
        {"envoy", {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}},
        {"off", {}},
    };
    const std::set<std::string> all = {
        "RateLimit",       "RateLimit-Policy",  "RateLimit-Limit",       "RateLimit-Remaining",
        "RateLimit-Reset", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"};
    for (const auto& row : rows) {
        CAPTURE(row.dialect);
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server(), two_an_hour("dialect: " + row.dialect)));
        for (const unsigned status : {200u, 200u, 429u}) {
            const auto result = gateway.ask(get);
            CHECK(status_of(result) == status);
            std::size_t found = 0;
            for (const auto& name : all)
                found += !field_of(result, name).empty();
            CHECK(found == row.has.size());
            for (const auto& name : row.has)
                CHECK(result.find("\r\n" + name + ": ") != std::string::npos);
            CHECK(result.find("quiet") == std::string::npos);
            CHECK((status == 429) == !field_of(result, "Retry-After").empty());
        }
    }
}

TEST_CASE("answers: every answer of the gateway's own has the request's id")
{
    const auto refused = refusal("dialect: ietf");
    CHECK(status_of(refused) == 429);
    CHECK(field_of(refused, "X-Request-Id").size() == 32);
    CHECK(count(refused, "X-Request-Id") == 1);
    CHECK(count(refusal("body: \"no\""), "X-Request-Id") == 1);
    running_gateway gateway("workers: 1\nlisteners: [ { address: 127.0.0.1:0 } ]\nupstreams: { up: { echo: true } }\n"
                            "forwarding: { request_id: { header: X-Trace, keep: true } }\n"
                            "routes: [ { name: all, match: { path: /x }, upstream: up } ]\n");
    const auto ask = [&](const std::string& line) {
        return field_of(gateway.ask(line + " HTTP/1.1\r\nHost: a\r\nX-Trace: mine\r\nMax-Forwards: 0\r\n\r\n"),
                        "X-Trace");
    };
    CHECK(ask("GET /x") == "mine");
    CHECK(ask("OPTIONS /x") == "mine");
    CHECK(ask("GET /y") == "mine");
}

TEST_CASE("answers: an epoch reset is the time at which the window ends")
{
    const auto before = std::time(nullptr);
    const auto result = refusal("dialect: x-ratelimit, reset: epoch");
    const auto reset = std::stoll(field_of(result, "X-RateLimit-Reset"));
    CHECK(reset > before);
    CHECK(reset <= std::time(nullptr) + 3600);
    CHECK(reset % 3600 == 0);
}

TEST_CASE("answers: L5, a refusal with the operator's body")
{
    const auto result = refusal("status: 503, body: \"{rule}: {limit}, wait {wait} s\", headers: { X-Docs: /limits }");
    CHECK(result.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    const auto wait = field_of(result, "Retry-After");
    CHECK(std::stoi(wait) >= 1);
    CHECK(body_of(result) == "hourly: 2 per hour, wait " + wait + " s");
    CHECK(field_of(result, "Content-Length") == std::to_string(body_of(result).size()));
    CHECK(field_of(result, "Content-Type") == "text/plain; charset=utf-8");
    CHECK(field_of(result, "Cache-Control") == "no-store");
    CHECK(field_of(result, "X-Docs") == "/limits");
    CHECK(field_of(result, "RateLimit") != "");
    CHECK(count(result, "Date: ") == 1);
}

TEST_CASE("answers: an operator's Cache-Control replaces ours, in any case")
{
    const auto result = refusal("headers: { cache-control: max-age=5 }");
    CHECK(field_of(result, "Cache-Control") == "max-age=5");
    CHECK(count(result, "ache-") == 1);
    CHECK(field_of(result, "Content-Type") == "application/problem+json");
}

TEST_CASE("answers: L5, a refusal with the operator's body is framed correctly for HEAD, HTTP/1.0 and keep-alive")
{
    recorder up;
    const std::string text(3000, 'x'); // larger than a body that is joined to a head
    running_gateway gateway(running_gateway::in_front_of(up.server(), two_an_hour("body: \"{rule}" + text + "\"")));
    auto client = gateway.connect();
    for (int i = 0; i < 2; ++i) {
        client.send(get);
        CHECK(status_of(client.read_response()) == 200);
    }
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get);
    const auto head = client.read_response(false);
    CHECK(status_of(head) == 429);
    CHECK(field_of(head, "Content-Length") == "3006");
    CHECK(body_of(client.read_response()) == "hourly" + text);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" + get);
    CHECK(body_of(client.read_response()) == "hourly" + text);
    CHECK(body_of(client.read_response()) == "hourly" + text);
    client.send("GET / HTTP/1.0\r\n\r\n");
    const auto last = client.read_all();
    CHECK(body_of(last) == "hourly" + text);
    CHECK(field_of(last, "Connection") == "close");
    CHECK(up.requests().size() == 2);
}

TEST_CASE("answers: the body's type is configured, or derived from its file's name, and values are escaped for it")
{
    struct row
    {
        std::string name, more, type;
    };
    for (const auto& [name, more, type] : std::vector<row>{
             {"a.html", "", "text/html; charset=utf-8"},
             {"a.json", "", "application/json"},
             {"a.txt", "", "text/plain; charset=utf-8"},
             {"a", "", "text/plain; charset=utf-8"},
             {"a.html", ", content_type: application/xhtml+xml", "application/xhtml+xml"},
         }) {
        CAPTURE(name);
        temporary_file file(name);
        file.write("<{rule}>\n");
        const auto result = refusal("body_file: " + file.path() + more);
        CHECK(field_of(result, "Content-Type") == type);
        CHECK(body_of(result) == "<hourly>\n");
    }
}

TEST_CASE("answers: an empty file is an empty body")
{
    temporary_file file("empty.txt");
    file.write("");
    const auto result = refusal("body_file: " + file.path());
    CHECK(status_of(result) == 429);
    CHECK(field_of(result, "Content-Length") == "0");
    CHECK(body_of(result) == "");
}

TEST_CASE("answers: O1, a body's file is read again on reload, and one that cannot be read changes nothing")
{
    recorder up;
    temporary_file file("reload.txt");
    file.write("first");
    const auto yaml = running_gateway::in_front_of(up.server(), two_an_hour("body_file: " + file.path()));
    running_gateway gateway(yaml);
    gateway.ask(get);
    gateway.ask(get);
    CHECK(body_of(gateway.ask(get)) == "first");
    file.write("second");
    CHECK(body_of(gateway.ask(get)) == "first");
    gateway.reload(yaml);
    CHECK(eventually([&] { return body_of(gateway.ask(get)) == "second"; }));
    std::filesystem::remove(file.path());
    CHECK_THROWS(gateway.reload(yaml));
    CHECK(body_of(gateway.ask(get)) == "second");
    file.write(std::string(64 * 1024 + 1, 'x'));
    CHECK_THROWS(gateway.reload(yaml));
    CHECK(body_of(gateway.ask(get)) == "second");
    file.write(std::string(64 * 1024, 'x'));
    gateway.reload(yaml);
    CHECK(eventually([&] { return body_of(gateway.ask(get)).size() == 64 * 1024; }));
}

TEST_CASE("answers: a route's own settings override the general ones")
{
    recorder up;
    temporary_file file("general.html");
    file.write("<p>{rule}</p>");
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), two_an_hour("status: 503, body_file: " + file.path() + ", headers: { X-From: general }",
                                 ", match: { path: /own }, answers: { dialect: envoy, body: \"own {rule}\" }") +
                         "  - { name: rest, upstream: up, chains: [ api ] }\n"));
    const auto third = [&](const std::string& path) {
        const auto request = "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
        gateway.ask(request);
        gateway.ask(request);
        return gateway.ask(request);
    };
    const auto own = third("/own");
    CHECK(status_of(own) == 503);
    CHECK(body_of(own) == "own hourly");
    CHECK(field_of(own, "Content-Type") == "text/plain; charset=utf-8");
    CHECK(field_of(own, "X-From") == "general");
    CHECK(field_of(own, "RateLimit") == "");
    CHECK(field_of(own, "x-ratelimit-limit") == "2, 2;w=3600;name=\"hourly\"");
    const auto rest = third("/");
    CHECK(body_of(rest) == "<p>hourly</p>");
    CHECK(field_of(rest, "RateLimit") != "");
}

TEST_CASE("answers: a header that would break a refusal, or a missing body file, is an error with its position")
{
    raw_upstream up(always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const auto with = [&](const std::string& answers) {
        const auto problem = problem_of(running_gateway::in_front_of(up, "answers:\n  " + answers + "\n"));
        return problem.substr(0, problem.find('\n'));
    };
    const std::string itself = " is not valid: the gateway writes this field itself; remove it";
    const std::string at = "test.yaml:12:14: answers.headers.";
    CHECK(with("headers: { Content-Length: 5 }") == at + "Content-Length: `Content-Length`" + itself);
    CHECK(with("headers: { transfer-encoding: chunked }") == at + "transfer-encoding: `transfer-encoding`" + itself);
    CHECK(with("headers: { Connection: close }") == at + "Connection: `Connection`" + itself);
    CHECK(with("headers: { Retry-After: 5 }").starts_with(at + "Retry-After: "));
    CHECK(with("headers: { Content-Type: a/b }").starts_with(at + "Content-Type: "));
    CHECK(with("headers: { \"X Y\": 5 }").starts_with(at + "X Y: "));
    CHECK(with("headers: { X: \"a\\r\\nSet-Cookie: b\" }").starts_with("test.yaml:12:17: answers.headers.X: "));
    CHECK(with("body_file: /nowhere/429.html") ==
          "test.yaml:12:14: answers.body_file: the body cannot be read: there is no such file");
    CHECK(with("body_file: /").starts_with("test.yaml:12:14: answers.body_file: the body cannot be read: "));
}

TEST_CASE("answers: RateLimit fields of an upstream are dropped, replace ours, or are sent with ours")
{
    const std::string limit_fields =
        "HTTP/1.1 200 OK\r\nRateLimit: \"theirs\";r=1\r\nX-RateLimit-Limit: 7\r\nRetry-After: 9\r\n"
        "Content-Length: 2\r\n\r\nok";
    const std::string silent = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    const auto relayed = [](const std::string& answer, const std::string& answers, const std::string& more = "") {
        recorder up(answer);
        running_gateway gateway(running_gateway::in_front_of(up.server(), two_an_hour(answers, more)));
        return gateway.ask(get);
    };
    const auto theirs = [](const std::string& result) {
        return count(result, "RateLimit: \"theirs\";r=1\r\n") + count(result, "X-RateLimit-Limit: 7\r\n");
    };
    const auto ours = [](const std::string& result) {
        return count(result, "RateLimit: \"hourly\"") + count(result, "RateLimit-Policy: \"hourly\"");
    };
    struct row
    {
        std::string answers;
        std::size_t theirs, ours, ours_when_silent;
    };
    for (const auto& row : std::vector<row>{{"status: 429", 0, 2, 2},
                                            {"upstream_headers: replace", 0, 2, 2},
                                            {"upstream_headers: keep", 2, 0, 2},
                                            {"upstream_headers: merge", 2, 2, 2},
                                            {"dialect: off", 2, 0, 0},
                                            {"dialect: off, upstream_headers: keep", 2, 0, 0}}) {
        CAPTURE(row.answers);
        const auto result = relayed(limit_fields, row.answers);
        CHECK(theirs(result) == row.theirs);
        CHECK(ours(result) == row.ours);
        CHECK(field_of(result, "Retry-After") == "9");
        CHECK(ours(relayed(silent, row.answers)) == row.ours_when_silent);
    }
    recorder up(limit_fields); // a route without limits sends no fields
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    CHECK(theirs(gateway.ask(get)) == 2);
}

TEST_CASE("answers: jitter makes Retry-After longer, never shorter, by varying amounts")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "chains:\n  api:\n    store: local\n    rules:\n"
                     "      - { name: hourly, key: [route], algorithm: fixed_window, limit: 1/hour, align: first }\n"
                     "answers: { retry_jitter: 20s, body: \"{wait}\" }\n"
                     "routes:\n  - { name: all, upstream: up, chains: [ api ] }\n"));
    gateway.ask(get);
    std::set<long> seen;
    for (int i = 0; i < 200; ++i) {
        const auto result = gateway.ask(get);
        const auto after = field_of(result, "Retry-After"), rate = field_of(result, "RateLimit");
        const auto exact = std::stol(rate.substr(rate.find(";t=") + 3));
        REQUIRE(std::stol(after) >= exact);
        REQUIRE(std::stol(after) <= exact + 20);
        REQUIRE(body_of(result) == after);
        seen.insert(std::stol(after) - exact);
    }
    CHECK(seen.size() > 5);
}

TEST_CASE("answers: the explanation of every rule is sent to allowed clients only, its field is not forwarded")
{
    const std::string ask = "GET / HTTP/1.1\r\nHost: a\r\nX-RateLimit-Explain: 1\r\n\r\n";
    const auto from = [](const std::string& address) {
        return "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + address + "\r\nx-ratelimit-explain: \r\n\r\n";
    };
    SUBCASE("from the allowed network")
    {
        recorder up;
        running_gateway gateway(
            running_gateway::in_front_of(up.server(), two_an_hour("explain_networks: [ 127.0.0.0/8 ]")));
        const auto first = field_of(gateway.ask(ask), "X-RateLimit-Explain");
        const std::string begin = "rule=\"hourly\"; chain=\"api\"; algorithm=fixed_window; limit=2; remaining=";
        CHECK(first.starts_with(begin + "1; verdict=passed; reset_after="));
        CHECK(first.find(", rule=\"quiet\"; chain=\"api\"; algorithm=fixed_window; limit=1; remaining=0; "
                         "verdict=passed; reset_after=") != std::string::npos);
        CHECK(field_of(up.last(), "X-RateLimit-Explain") == "");
        CHECK(field_of(gateway.ask(get), "X-RateLimit-Explain") == ""); // no explanation without the request field
        const auto refused = gateway.ask(ask);
        CHECK(status_of(refused) == 429);
        const auto third = field_of(refused, "X-RateLimit-Explain");
        CHECK(third.starts_with(begin + "0; verdict=refused; retry_after="));
        CHECK(third.find("verdict=shadow_refused; retry_after=") != std::string::npos);
    }
    SUBCASE("from another network, or when no network is allowed")
    {
        for (const std::string answers : {"explain_networks: [ 10.0.0.0/8 ]", "status: 429"}) {
            CAPTURE(answers);
            recorder up;
            running_gateway gateway(running_gateway::in_front_of(up.server(), two_an_hour(answers)));
            for (const auto& request : {ask, from("10.0.0.1")}) // an untrusted peer's X-Forwarded-For has no effect
                CHECK(field_of(gateway.ask(request), "X-RateLimit-Explain") == "");
            CHECK(field_of(up.last(), "X-RateLimit-Explain") == "");
            CHECK(up.last().find("xplain") == std::string::npos);
            CHECK(field_of(gateway.ask(ask), "X-RateLimit-Explain") == "");
        }
    }
    SUBCASE("behind a trusted proxy, the address of the proxy's client decides")
    {
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(
            up.server(), two_an_hour("explain_networks: [ 10.0.0.0/8 ]", "", "trusted_proxies: [ 127.0.0.1 ]\n")));
        CHECK(field_of(gateway.ask(from("10.0.0.1")), "X-RateLimit-Explain") != "");
        CHECK(field_of(gateway.ask(from("192.0.2.1")), "X-RateLimit-Explain") == "");
    }
    SUBCASE("together with fields that the upstream's replace")
    {
        recorder up("HTTP/1.1 200 OK\r\nRateLimit: \"theirs\";r=1\r\nContent-Length: 2\r\n\r\nok");
        running_gateway gateway(running_gateway::in_front_of(
            up.server(), two_an_hour("explain_networks: 127.0.0.1, upstream_headers: keep")));
        const auto result = gateway.ask(ask);
        CHECK(field_of(result, "X-RateLimit-Explain") != "");
        CHECK(count(result, "RateLimit: ") == 1);
        CHECK(field_of(result, "RateLimit") == "\"theirs\";r=1");
    }
}
