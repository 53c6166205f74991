// Limits on requests through the real gateway: keys, plans, costs, outcomes.
#include "config/load.hpp"
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate::tests;

namespace {

// Returns a configuration that forwards everything to `up`, with one chain of `rules`; `more` are further top-level
// lines.
std::string limited(const raw_upstream& up, const std::string& rules, const std::string& more = "",
                    const std::string& route = "")
{
    return running_gateway::in_front_of(up, more + "chains:\n  api:\n    store: local\n    rules:\n" + rules +
                                                "routes:\n  - { name: all, upstream: up, chains: [ api ]" +
                                                (route.empty() ? "" : ", " + route) + " }\n");
}

std::string request(const std::string& path, const std::string& fields = "", const std::string& method = "GET")
{
    return method + " " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

unsigned ask(const running_gateway& gateway, const std::string& text)
{
    auto client = gateway.connect();
    client.send(text);
    return status_of(client.read_response(!text.starts_with("HEAD")));
}

// Returns how many of `n` requests are answered 200; the others must be 429.
int pass(const running_gateway& gateway, int n, const std::string& text)
{
    int passed = 0;
    auto client = gateway.connect();
    for (int i = 0; i < n; ++i) {
        client.send(text);
        const auto status = status_of(client.read_response());
        CHECK((status == 200 || status == 429));
        passed += status == 200;
    }
    return passed;
}

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string by_hour = "algorithm: fixed_window, align: first, limit: ";

} // namespace

TEST_CASE("keys: the first source that is present, each kind apart from the others (K6, K9)")
{
    recorder up(ok);
    running_gateway gateway(limited(up.server(), "      - { name: one, key: caller, " + by_hour + "1/hour }\n",
                                    "keys:\n  inner: [ { cookie: session }, { query: api_key } ]\n"
                                    "  caller: [ { header: X-API-Key }, { header: X-Other }, inner, client_ip ]\n"));
    const std::string cookie = "Cookie: a=1; session=same\r\n";
    // Five identities with similar texts, each with its own counter.
    for (const auto& text : {request("/", "X-API-Key: same\r\n"), request("/", "X-Other: same\r\n"),
                             request("/", cookie), request("/?api_key=same"), request("/")}) {
        CAPTURE(text);
        CHECK(ask(gateway, text) == 200);
        CHECK(ask(gateway, text) == 429);
    }
    // Spellings of one identity: case of the header's name, escapes in a query, order of cookies.
    CHECK(ask(gateway, request("/", "x-api-key: same\r\n")) == 429);
    CHECK(ask(gateway, request("/?b=2&api%5Fkey=s%61me")) == 429);
    CHECK(ask(gateway, request("/", "Cookie: session=same\r\nCookie: z=1\r\n")) == 429);
    CHECK(ask(gateway, request("/", "Cookie: session=\"same\"\r\n")) == 429);
    // Other identities: case of the value, a separator in it, bytes that look similar.
    CHECK(ask(gateway, request("/", "X-API-Key: Same\r\n")) == 200);
    CHECK(ask(gateway, request("/", "X-API-Key: same,h=same\r\n")) == 200);
    CHECK(ask(gateway, request("/?api_key=s%D0%B0me")) == 200); // a Cyrillic a
    CHECK(ask(gateway, request("/?api_key=s%D0%B0me")) == 429);
}

TEST_CASE("keys: a host counts by its one spelling")
{
    recorder up(ok);
    running_gateway gateway(limited(up.server(), "      - { name: one, key: host, " + by_hour + "1/hour }\n"));
    const auto from = [&](const std::string& host) {
        return ask(gateway, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    };
    CHECK(from("[::1]") == 200);
    for (const char* same : {"[::1]", "[0::1]", "[0:0:0:0:0:0:0:1]:8080"})
        CHECK(from(same) == 429);
    CHECK(from("[::2]") == 200);
    CHECK(from("a.example") == 200);
    CHECK(from("A.Example.:80") == 429);
}

TEST_CASE("keys: repeated, empty, too long or with control bytes is 400, never the first one (K6)")
{
    recorder up(ok);
    running_gateway gateway(limited(up.server(), "      - { name: one, key: caller, " + by_hour + "100/hour }\n",
                                    "keys:\n  caller: [ { header: X-API-Key }, { cookie: s }, { query: k } ]\n"));
    const std::vector<std::string> bad{
        request("/", "X-API-Key: a\r\nX-API-Key: a\r\n"),
        request("/", "X-API-Key: a\r\nx-api-key: b\r\n"),
        request("/", "X-API-Key:\r\n"),
        request("/", "X-API-Key: a b\r\n"),
        request("/", "X-API-Key: \xd0\xb0\r\n"),
        request("/", "X-API-Key: " + std::string(257, 'a') + "\r\n"),
        request("/", "Cookie: s=1; s=2\r\n"),
        request("/", "Cookie: s=\r\n"),
        request("/?k=1&k=1"),
        request("/?k="),
        request("/?k=a%0ab"),
        request("/?k=" + std::string(300, 'a')),
    };
    for (const auto& text : bad) {
        CAPTURE(text);
        CHECK(ask(gateway, text) == 400);
    }
    CHECK(up.requests().empty());
    CHECK(ask(gateway, request("/", "X-API-Key: " + std::string(256, 'a') + "\r\n")) == 200);
}

TEST_CASE("keys: a path parameter counts by its one spelling (K4, K5)")
{
    recorder up(ok);
    const auto yaml = running_gateway::in_front_of(
        up.server(), "keys:\n  tenant: [ { path_param: id } ]\nchains:\n  api:\n    store: local\n    rules:\n"
                     "      - { name: one, key: tenant, " +
                         by_hour + "1/hour }\n" +
                         "routes:\n  - { name: t, match: { path: \"/t/{id}/*\" }, upstream: up, chains: [ api ] }\n");
    running_gateway gateway(yaml);
    CHECK(ask(gateway, request("/t/acme/x")) == 200);
    for (const auto* path : {"/t/acme/y", "/t/%61cme/x", "/t/./acme/x", "/t//acme/x", "/t/b/../acme/x"}) {
        CAPTURE(path);
        CHECK(ask(gateway, request(path)) == 429);
    }
    CHECK(ask(gateway, request("/t/Acme/x")) == 200);
}

TEST_CASE("missing: anonymous shares one counter, refuse is 401 missing_key, skip counts nothing")
{
    recorder up(ok);
    const auto with = [&](const std::string& missing) {
        return limited(up.server(), "      - { name: one, key: caller, " + by_hour + "1/hour }\n",
                       "keys:\n  caller: { sources: [ { header: X-API-Key } ], missing: " + missing + " }\n");
    };
    SUBCASE("anonymous")
    {
        running_gateway gateway(with("anonymous"));
        CHECK(pass(gateway, 3, request("/")) == 1);
        // A client with this name has another counter.
        CHECK(ask(gateway, request("/", "X-API-Key: anonymous\r\n")) == 200);
    }
    SUBCASE("refuse")
    {
        running_gateway gateway(with("refuse"));
        const auto answer = gateway.ask(request("/"));
        CHECK(status_of(answer) == 401);
        CHECK(field_of(answer, "WWW-Authenticate") == "ApiKey");
    }
    SUBCASE("skip")
    {
        running_gateway gateway(with("skip"));
        CHECK(pass(gateway, 5, request("/")) == 5);
        CHECK(pass(gateway, 5, request("/", "X-API-Key: a\r\n")) == 1);
    }
}

TEST_CASE("API keys of a table: the user's counter and plan; an unknown key makes no counter (K8)")
{
    temporary_folder folder;
    const auto file = folder.file("keys");
    recorder up(ok);
    const auto sha = [](const std::string& key) {
        std::string hex;
        auto* pipe = ::popen(("printf %s " + key + " | sha256sum").c_str(), "r");
        char bytes[65] = {};
        if (std::fread(bytes, 1, 64, pipe) == 64)
            hex = bytes;
        ::pclose(pipe);
        return hex;
    };
    std::ofstream(file) << "# keys\n"
                        << sha("k1") << " ann pro\n"
                        << sha("k2") << " ann pro\n"
                        << sha("k3") << " bob\n";
    const auto yaml =
        limited(up.server(), "      - { name: one, key: user, " + by_hour + "1/hour, plans: { pro: 3/hour } }\n",
                "api_keys:\n  customers: { file: " + file + " }\n" +
                    "keys:\n  user: [ { api_key: { table: customers } }, client_ip ]\n"
                    "plans: { names: [ free, pro ], default: free, sources: [ { api_key: { table: customers } } ] }\n");
    running_gateway gateway(yaml);
    CHECK(pass(gateway, 2, request("/", "X-API-Key: k1\r\n")) == 2);
    CHECK(pass(gateway, 3, request("/", "X-API-Key: k2\r\n")) == 1); // ann's other key, one counter
    CHECK(pass(gateway, 3, request("/", "X-API-Key: k3\r\n")) == 1); // no plan: the default
    // All guessed keys count against the client's address.
    int passed = 0;
    for (int i = 0; i < 20; ++i)
        passed += ask(gateway, request("/", "X-API-Key: guess" + std::to_string(i) + "\r\n")) == 200;
    CHECK(passed == 1);
    std::ofstream(file) << sha("k9") << " zoe pro\n";
    gateway.reload(yaml);
    CHECK(eventually([&] { return ask(gateway, request("/", "X-API-Key: k9\r\n")) == 200; }));
}

TEST_CASE("API keys of a table: one that is not in it is called unknown, not missing")
{
    temporary_folder folder;
    const auto file = folder.file("keys");
    std::ofstream(file) << std::string(64, 'a') << " ann\n";
    recorder up(ok);
    running_gateway gateway(limited(up.server(), "      - { name: one, key: user, " + by_hour + "1/hour }\n",
                                    "api_keys:\n  customers: { file: " + file +
                                        " }\nkeys:\n  user: { sources: [ { api_key: { table: customers } } ], "
                                        "missing: refuse }\n"));
    for (const auto& [fields, code] :
         {std::pair("X-API-Key: wrong\r\n", "unknown_key"), std::pair("", "missing_key")}) {
        const auto answer = gateway.ask(request("/", fields));
        CHECK(status_of(answer) == 401);
        CHECK(field_of(answer, "WWW-Authenticate") == "ApiKey");
        CHECK(nlohmann::json::parse(body_of(answer))["code"] == code);
    }
}

TEST_CASE("plans: by the request, by the key's value, unlimited and blocked")
{
    recorder up(ok);
    running_gateway gateway(
        limited(up.server(),
                "      - name: one\n        key: user\n        algorithm: fixed_window\n        align: first\n"
                "        limit: 2/hour\n        plans: { pro: 4/hour, gold: unlimited, banned: blocked }\n"
                "        overrides: { eve: blocked, zed: 1/hour, free-rider: unlimited }\n",
                "keys:\n  user: [ { header: X-User } ]\n"
                "plans: { names: [ free, pro, gold, banned ], default: free, sources: [ { header: X-Plan } ], "
                "overrides: { vip: gold } }\n"));
    const auto as = [](const std::string& user, const std::string& plan = "") {
        return request("/", "X-User: " + user + "\r\n" + (plan.empty() ? "" : "X-Plan: " + plan + "\r\n"));
    };
    CHECK(pass(gateway, 6, as("ann")) == 2);
    CHECK(pass(gateway, 6, as("bob", "pro")) == 4);
    CHECK(pass(gateway, 6, as("carl", "no-such-plan")) == 2);
    CHECK(pass(gateway, 20, as("dora", "gold")) == 20);
    CHECK(ask(gateway, as("frank", "banned")) == 403);
    CHECK(ask(gateway, as("eve", "gold")) == 403); // an override takes precedence over a plan
    CHECK(pass(gateway, 6, as("zed", "pro")) == 1);
    CHECK(pass(gateway, 9, as("free-rider")) == 9);
    CHECK(pass(gateway, 9, as("vip")) == 9);
    // Changes between plans: 4 were used, and stay used.
    CHECK(ask(gateway, as("bob", "free")) == 429);
    CHECK(ask(gateway, as("bob", "pro")) == 429);
}

TEST_CASE("blocked: 403; the log, the metrics and the explanation name the rule that blocks")
{
    recorder up(ok);
    log_pipe pipe;
    running_gateway gateway(running_gateway::in_front_of(
        up.server(),
        "keys:\n  user: [ { header: X-User } ]\n"
        "plans: { names: [ free, banned ], default: free, sources: [ { header: X-Plan } ] }\n"
        "answers: { explain_networks: [ 127.0.0.0/8 ] }\n"
        "admin: { address: 127.0.0.1:0 }\nlog: { access: { path: " +
            pipe.path() +
            " } }\nchains:\n  guard:\n    store: local\n    rules:\n      - { name: address, key: client_ip, " +
            by_hour + "3/hour }\n  quota:\n    store: local\n    rules:\n      - { name: wide, key: [route], " +
            by_hour + "100/hour }\n      - { name: narrow, key: user, " + by_hour +
            "50/hour, plans: { banned: blocked }, overrides: { eve: blocked } }\n"
            "routes:\n  - { name: all, upstream: up, chains: [ guard, quota ] }\n"));
    const auto as = [](const std::string& fields) { return request("/", fields + "X-RateLimit-Explain: 1\r\n"); };
    const auto check = [&](const std::string& fields) {
        const auto answer = gateway.ask(as(fields));
        CHECK(status_of(answer) == 403);
        CHECK(field_of(answer, "X-RateLimit-Explain")
                  .ends_with("rule=\"narrow\"; chain=\"quota\"; verdict=blocked; retry_after=never"));
        const auto line = nlohmann::json::parse(pipe.next_line());
        CHECK(line["limit"] == "blocked");
        CHECK(line["rule"] == "narrow");
        CHECK(line["identity"] == "user/header:X-User");
        CHECK(line["error"] == "blocked");
        CHECK(line["used"] == 0);
    };
    for (int i = 0; i < 3; ++i) { // nothing is charged: the address may still be used three times
        check("X-User: eve\r\n");
        check("X-User: ann\r\nX-Plan: banned\r\n");
    }
    CHECK(metric_at_last(gateway, "headgate_limited_total{route=\"all\",rule=\"narrow\"}", 6) == 6);
    CHECK(metric(gateway, "headgate_limited_total{route=\"all\",rule=\"address\"}") == 0);
    CHECK(pass(gateway, 4, request("/", "X-User: ann\r\n")) == 3);
}

TEST_CASE("blocked: a shadow rule refuses nothing, and the log, the metrics and the explanation say what it would do")
{
    recorder up(ok);
    log_pipe pipe;
    running_gateway gateway(limited(
        up.server(),
        "      - { name: trial, key: user, " + by_hour + "50/hour, mode: shadow, overrides: { eve: blocked } }\n",
        "keys:\n  user: [ { header: X-User } ]\nanswers: { explain_networks: [ 127.0.0.0/8 ] }\n"
        "admin: { address: 127.0.0.1:0 }\nlog: { access: { path: " +
            pipe.path() + " } }\n"));
    const auto answer = gateway.ask(request("/", "X-User: eve\r\nX-RateLimit-Explain: 1\r\n"));
    CHECK(status_of(answer) == 200);
    CHECK(field_of(answer, "X-RateLimit-Explain").find("verdict=shadow_refused; retry_after=never") !=
          std::string::npos);
    const auto line = nlohmann::json::parse(pipe.next_line());
    CHECK(line["limit"] == "shadow_refused");
    CHECK(line["rule"] == "trial");
    CHECK(metric_at_last(gateway, "headgate_shadow_limited_total{route=\"all\",rule=\"trial\"}", 1) == 1);
    CHECK(ask(gateway, request("/", "X-User: ann\r\n")) == 200);
    CHECK(nlohmann::json::parse(pipe.next_line())["limit"] == "passed");
}

TEST_CASE("overrides: an entry belongs to one source, and no other one gets it")
{
    recorder up(ok);
    const std::string keys = "keys:\n  user: [ { header: X-API-Key }, client_ip ]\n";
    // Either the entry is refused as ambiguous, or it is of the source that it names.
    const auto passed = [&](const std::string& rule, const std::string& attack, const std::string& more = "") {
        const auto yaml =
            limited(up.server(), "      - { name: one, " + by_hour + "2/hour, " + rule + " }\n", keys + more);
        const auto loaded = headgate::config::load_text(yaml, "test.yaml");
        if (!loaded.config)
            return 0;
        running_gateway gateway(yaml);
        return pass(gateway, 6, attack);
    };
    const auto claims = request("/", "X-API-Key: 203.0.113.7\r\n");
    const std::string host = "GET / HTTP/1.1\r\nHost: 10.1.1.1\r\n\r\n";
    const std::string plans = "plans: { names: [ free, pro ], default: free, overrides: { alice: pro } }\n";
    SUBCASE("as it was written before")
    {
        CHECK(passed("key: user, overrides: { 203.0.113.7: unlimited }", claims) <= 2);
        CHECK(passed("key: [ client_ip, host ], overrides: { 10.1.1.1: unlimited }", host) <= 2);
        CHECK(passed("key: [ client_ip, method ], overrides: { PUT: unlimited }", request("/", "", "PUT")) <= 2);
        CHECK(passed("key: [ user, host ], plans: { pro: unlimited }", "GET / HTTP/1.1\r\nHost: alice\r\n\r\n",
                     plans) <= 2);
    }
    SUBCASE("an address")
    {
        const std::string rule = "key: user, overrides: { client_ip=127.0.0.1: unlimited }";
        CHECK(passed(rule, request("/", "X-API-Key: 127.0.0.1\r\n")) == 2);
        CHECK(passed(rule, request("/")) == 6);
    }
    SUBCASE("a header, with all bytes that are escaped")
    {
        const std::string rule = "key: user, overrides: { \"X-API-Key=a%2Cb%3D%25%2F\": unlimited }";
        CHECK(passed(rule, request("/", "X-API-Key: a,b=%/\r\n")) == 6);
        CHECK(passed(rule, request("/", "X-API-Key: a\r\n")) == 2);
    }
    SUBCASE("a part of a composite key, and both parts")
    {
        const std::string one = "key: [ client_ip, host ], overrides: { client_ip=127.0.0.1: unlimited }";
        CHECK(passed(one, host) == 6);
        const std::string both = "key: [ client_ip, host ], overrides: { client_ip=127.0.0.1: blocked, "
                                 "\"client_ip=127.0.0.1,host=A.example\": unlimited }";
        CHECK(passed(both, "GET / HTTP/1.1\r\nHost: a.Example\r\n\r\n") == 6);
    }
    SUBCASE("a plan, wherever that source identified the request")
    {
        const std::string more =
            "  tenant: [ { query: t }, { header: X-API-Key } ]\n"
            "plans: { names: [ free, pro ], default: free, overrides: { X-API-Key=alice: pro } }\n";
        for (const auto* key : {"user", "tenant", "[ user, host ]"}) {
            CAPTURE(key);
            const auto rule = "key: " + std::string(key) + ", plans: { pro: 4/hour }";
            CHECK(passed(rule, request("/", "X-API-Key: alice\r\n"), more) == 4);
            CHECK(passed(rule, request("/", "X-API-Key: bob\r\n"), more) == 2);
        }
        CHECK(passed("key: tenant, plans: { pro: 4/hour }", request("/?t=alice", "X-API-Key: alice\r\n"), more) == 2);
    }
}

TEST_CASE("overrides: an identity as the access log spells it is the one that an entry names")
{
    recorder up(ok);
    log_pipe pipe;
    const auto with = [&](const std::string& overrides) {
        return running_gateway::in_front_of(
            up.server(),
            "log: { access: { path: " + pipe.path() +
                " } }\nkeys:\n  tenant: [ { path_param: id } ]\nchains:\n  api:\n    store: local\n    rules:\n"
                "      - { name: one, key: [ client_ip, tenant, method ], " +
                by_hour + "1/hour, overrides: { " + overrides +
                " } }\nroutes:\n  - { name: t, match: { path: \"/t/{id}/*\" }, upstream: up, chains: [ api ] }\n");
    };
    for (const std::string path : {"/t/acme/x", "/t/a,b/x", "/t/a%3Db/x", "/t/100%25/x", "/t/%C3%A9~!/x"}) {
        CAPTURE(path);
        std::string identity;
        {
            running_gateway gateway(with(""));
            CHECK(pass(gateway, 2, request(path)) == 1);
            identity = nlohmann::json::parse(pipe.next_line())["identity"];
            pipe.next_line();
        }
        CAPTURE(identity);
        CHECK(identity.starts_with("client_ip/client_ip=127.0.0.1,tenant/path_param:id="));
        CHECK(identity.ends_with(",method/method=GET"));
        running_gateway gateway(with("\"" + identity + "\": unlimited"));
        CHECK(pass(gateway, 3, request(path)) == 3);
        CHECK(pass(gateway, 3, request("/t/other/x")) == 1);
        for (int i = 0; i < 6; ++i)
            pipe.next_line();
    }
}

TEST_CASE("cost: by method, by a header that is capped, for a route; malformed values are 400")
{
    recorder up(ok);
    SUBCASE("by method")
    {
        running_gateway gateway(limited(up.server(), "      - { name: one, key: [route], " + by_hour +
                                                         "10/hour, cost: { methods: { POST: 5 }, default: 1 } }\n"));
        CHECK(ask(gateway, request("/", "Content-Length: 0\r\n", "POST")) == 200);
        CHECK(pass(gateway, 9, request("/")) == 5);
    }
    SUBCASE("by a header")
    {
        running_gateway gateway(
            limited(up.server(), "      - { name: one, key: [route], " + by_hour +
                                     "100/hour, cost: { header: X-Cost, max: 40, default: 2 } }\n"));
        CHECK(ask(gateway, request("/", "X-Cost: 40\r\n")) == 200);
        CHECK(ask(gateway, request("/", "X-Cost: 99999999999999999999999999\r\n")) == 200); // 40
        CHECK(ask(gateway, request("/", "X-Cost: 18\r\n")) == 200);
        CHECK(ask(gateway, request("/")) == 200); // the default, 2
        CHECK(ask(gateway, request("/", "X-Cost: 0\r\n")) == 429);
        for (const auto* bad : {"-1", "1.5", "x", "0x10", "1 2", "+1", "1e3"})
            CHECK(ask(gateway, request("/", "X-Cost: " + std::string(bad) + "\r\n")) == 400);
        CHECK(ask(gateway, request("/", "X-Cost: 1\r\nX-Cost: 1\r\n")) == 400);
    }
    SUBCASE("a client cannot declare its request free")
    {
        running_gateway gateway(limited(up.server(), "      - { name: one, key: [route], " + by_hour +
                                                         "3/hour, cost: { header: X-Cost } }\n"));
        CHECK(pass(gateway, 9, request("/", "X-Cost: 0\r\n")) == 3);
    }
    SUBCASE("for a route, when the rule has no cost")
    {
        running_gateway gateway(
            limited(up.server(),
                    "      - { name: one, key: [route], " + by_hour +
                        "10/hour }\n"
                        "      - { name: at-once, key: [route], algorithm: concurrency, limit: 1 }\n",
                    "", "cost: 4"));
        CHECK(pass(gateway, 9, request("/")) == 2);
    }
}

TEST_CASE("settle: the answer declares the cost, more or less than the charge")
{
    std::atomic<const char*> tokens{"30"};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty())
            client.send("HTTP/1.1 200 OK\r\nX-Tokens: " + std::string(tokens.load()) +
                        "\r\nContent-Length: 10\r\n\r\n0123456789");
    });
    const auto left = [](const std::string& answer) { return field_of(answer, "RateLimit"); };
    SUBCASE("from a header")
    {
        running_gateway gateway(limited(up, "      - { name: t, key: [route], " + by_hour +
                                                "100/hour, unit: tokens, cost: { settle: X-Tokens, reserve: 20 } }\n"));
        auto client = gateway.connect();
        const auto ask_once = [&] {
            client.send(request("/"));
            return client.read_response();
        };
        CHECK(left(ask_once()).starts_with("\"t\";r=70;")); // 20 charged at first, 30 settled
        CHECK(left(ask_once()).starts_with("\"t\";r=40;"));
        tokens = "nonsense"; // the estimate stays
        CHECK(left(ask_once()).starts_with("\"t\";r=20;"));
        tokens = "0";
        CHECK(left(ask_once()).starts_with("\"t\";r=20;")); // the whole charge is given back
        tokens = "5";
        CHECK(left(ask_once()).starts_with("\"t\";r=15;"));
        CHECK(status_of(ask_once()) == 429); // 85 used, the next costs 20
    }
    SUBCASE("from the size of the body")
    {
        running_gateway gateway(limited(up, "      - { name: b, key: [route], " + by_hour +
                                                "100/hour, unit: bytes, cost: { settle: response_bytes } }\n"));
        auto client = gateway.connect();
        for (int i = 0; i < 3; ++i) {
            client.send(request("/"));
            CHECK(left(client.read_response()).starts_with("\"b\";r=" + std::to_string(99 - 10 * i) + ";"));
        }
    }
}

TEST_CASE("settle: the answer's fields and its log line tell of the settled cost, in every dialect")
{
    recorder up("HTTP/1.1 200 OK\r\nX-Tokens: 35\r\nContent-Length: 2\r\n\r\nok");
    log_pipe pipe;
    const auto with = [&](const std::string& dialect, const std::string& rule) {
        return limited(up.server(), rule,
                       "answers: { dialect: " + dialect + " }\nlog: { access: { path: " + pipe.path() + " } }\n");
    };
    const std::string by_window =
        "      - { name: t, key: [route], " + by_hour + "100/hour, cost: { settle: X-Tokens, reserve: 20 } }\n";
    for (const auto& [dialect, field, value] : std::initializer_list<std::array<const char*, 3>>{
             {"ietf", "RateLimit", "\"t\";r=65;t=3600"}, {"x-ratelimit", "X-RateLimit-Remaining", "65"}}) {
        CAPTURE(dialect);
        running_gateway gateway(with(dialect, by_window));
        CHECK(field_of(gateway.ask(request("/")), field) == value);
        const auto line = nlohmann::json::parse(pipe.next_line());
        CHECK(line["used"] == 35);
        CHECK(line["quota"] == 100);
    }
    // 7 per minute: after 35 the bucket is full again in exactly five minutes, not a second later.
    running_gateway bucket(with("ietf", "      - { name: t, key: [route], algorithm: token_bucket, limit: 7/minute, "
                                        "burst: 35, cost: { settle: X-Tokens, reserve: 3 } }\n"));
    CHECK(field_of(bucket.ask(request("/")), "RateLimit") == "\"t\";r=0;t=300");
    CHECK(nlohmann::json::parse(pipe.next_line())["used"] == 35);
    // What is known only at the end is in the log line.
    running_gateway bytes(with("ietf", "      - { name: t, key: [route], " + by_hour +
                                           "100/hour, cost: { settle: response_bytes, reserve: 20 } }\n"));
    CHECK(field_of(bytes.ask(request("/")), "RateLimit") == "\"t\";r=80;t=3600");
    CHECK(nlohmann::json::parse(pipe.next_line())["used"] == 2);
}

TEST_CASE("settle: a header that cannot be read is counted, and logged once per period; the reservation stays")
{
    std::atomic<const char*> header{""};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty())
            client.send("HTTP/1.1 200 OK\r\n" + std::string(header.load()) + "Content-Length: 0\r\n\r\n");
    });
    const captured_log log;
    running_gateway gateway(limited(up,
                                    "      - { name: minute, key: [route], " + by_hour +
                                        "1000/hour, cost: { settle: X-Unreadable, reserve: 10 } }\n" +
                                        "      - { name: day, key: [route], " + by_hour +
                                        "1000/hour, cost: { settle: X-Unreadable, reserve: 10 } }\n",
                                    "admin: { address: 127.0.0.1:0 }\n"));
    int left = 1000, unreadable = 0;
    for (const auto* text : {"X-Unreadable: 1.5\r\n", "X-Unreadable: -1\r\n", "X-Unreadable:\r\n",
                             "X-Unreadable: 3\r\nX-Unreadable: 3\r\n", "X-Unreadable: 123456789012345678901\r\n"}) {
        CAPTURE(text);
        header = text;
        left -= 10, ++unreadable;
        CHECK(
            field_of(gateway.ask(request("/")), "RateLimit").starts_with("\"minute\";r=" + std::to_string(left) + ";"));
    }
    header = ""; // an answer without the header is no mistake
    CHECK(field_of(gateway.ask(request("/")), "RateLimit").starts_with("\"minute\";r=" + std::to_string(left - 10)));
    CHECK(metric(gateway, "headgate_unreadable_costs_total{route=\"all\"}") == unreadable);
    CHECK(log.text().find("route all: the upstream's X-Unreadable cannot be read as a cost: `1.5`") !=
          std::string::npos);
    CHECK(count(log.text(), "cannot be read") == 1);
}

TEST_CASE("cost: more than is left waits for the window's end; more than the rule can hold gets no Retry-After")
{
    recorder up(ok);
    for (const std::string rule :
         {"fixed_window, limit: 1000/day", "fixed_window, align: first, limit: 1000/day",
          "sliding_log, limit: 1000/day", "sliding_window, limit: 1000/day", "token_bucket, limit: 1000/day",
          "gcra, limit: 1000/day, burst: 999", "leaky_bucket, limit: 1000/day, burst: 999"}) {
        CAPTURE(rule);
        running_gateway gateway(limited(up.server(), "      - { name: day, key: [route], algorithm: " + rule +
                                                         ", cost: { header: X-Cost, max: 5000 } }\n"));
        const auto costing = [&](int cost) {
            return gateway.ask(request("/", "X-Cost: " + std::to_string(cost) + "\r\n"));
        };
        CHECK(status_of(costing(600)) == 200);
        const auto waits = costing(500);
        CHECK(status_of(waits) == 429);
        const auto wait = field_of(waits, "Retry-After");
        REQUIRE(!wait.empty());
        CHECK(std::stol(wait) > 0);
        CHECK(std::stol(wait) <= 2 * 86400);
        if (rule == "fixed_window, limit: 1000/day") {
            const auto now = std::chrono::system_clock::now().time_since_epoch();
            const auto to_midnight = 86400 - std::chrono::duration_cast<std::chrono::seconds>(now).count() % 86400;
            CHECK(std::stol(wait) >= to_midnight);
            CHECK(std::stol(wait) <= to_midnight + 30);
        }
        CHECK(field_of(waits, "RateLimit").starts_with("\"day\";r=400;t=" + wait));
        const auto never = costing(1001);
        CHECK(status_of(never) == 429);
        CHECK(field_of(never, "Retry-After").empty());
        CHECK(field_of(never, "RateLimit") == "\"day\";r=400");
        CHECK(status_of(costing(400)) == 200);
    }
}

TEST_CASE("outcome: the answer's fields tell of what it is charged")
{
    recorder up("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    running_gateway gateway(limited(up.server(), "      - { name: login, key: [route], " + by_hour +
                                                     "5/hour, outcome: { charge: [ 401 ] } }\n"));
    for (int i = 0; i < 3; ++i)
        CHECK(field_of(gateway.ask(request("/")), "RateLimit") == "\"login\";r=5;t=0");
    raw_upstream silent([](raw_upstream& self, raw_connection& client) { self.read_request(client); });
    running_gateway failing(limited(silent, "      - { name: hour, key: [route], " + by_hour +
                                                "5/hour, outcome: { refund: [ upstream_failure ] } }\n"));
    const auto error = failing.ask(request("/", "Content-Length: 0\r\n", "POST"));
    CHECK(status_of(error) == 502);
    CHECK(field_of(error, "RateLimit") == "\"hour\";r=5;t=0"); // it will be given back
}

TEST_CASE("outcome: only some statuses count, others are given back")
{
    std::atomic<const char*> status{""};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        while (!self.read_request(client).empty()) {
            const std::string with(status.load());
            if (with.empty())
                return; // the connection closes without an answer
            client.send("HTTP/1.1 " + with + "\r\nContent-Length: 0\r\n\r\n");
        }
    });
    const auto answered = [&](running_gateway& gateway, const char* with) {
        status = with;
        return ask(gateway, request("/", "Content-Length: 0\r\n", "POST"));
    };
    SUBCASE("charge: failed logins")
    {
        running_gateway gateway(limited(up, "      - { name: login, key: [route], " + by_hour +
                                                "2/hour, outcome: { charge: [ 401 ] } }\n"));
        for (int i = 0; i < 5; ++i)
            CHECK(answered(gateway, "200 OK") == 200);
        CHECK(answered(gateway, "401 No") == 401);
        CHECK(answered(gateway, "401 No") == 401);
        CHECK(answered(gateway, "200 OK") == 429);
    }
    SUBCASE("refund: errors of the upstream")
    {
        running_gateway gateway(limited(up, "      - { name: r, key: [route], " + by_hour +
                                                "2/hour, outcome: { refund: [ 5xx, upstream_failure ] } }\n"));
        for (int i = 0; i < 4; ++i)
            CHECK(answered(gateway, "500 Oh") == 500);
        for (int i = 0; i < 4; ++i)
            CHECK(answered(gateway, "") == 502);
        CHECK(answered(gateway, "200 OK") == 200);
        CHECK(answered(gateway, "404 No") == 404);
        CHECK(answered(gateway, "200 OK") == 429);
    }
}

TEST_CASE("chains: a refusal in a later one gives back the charge of an earlier one, a bad credential does not (K8)")
{
    recorder up(ok);
    const auto yaml = running_gateway::in_front_of(
        up.server(), "keys:\n  user: { sources: [ { header: X-User } ], missing: refuse }\n"
                     "chains:\n  guard:\n    store: local\n    rules:\n"
                     "      - { name: guard, key: [client_ip], " +
                         by_hour + "5/hour }\n" + "  quota:\n    store: local\n    rules:\n" +
                         "      - { name: quota, key: user, " + by_hour + "1/hour }\n" +
                         "routes:\n  - { name: all, upstream: up, chains: [ guard, quota ] }\n");
    running_gateway gateway(yaml);
    // 49 refusals by the quota charge nothing to the guard.
    CHECK(pass(gateway, 50, request("/", "X-User: ann\r\n")) == 1);
    CHECK(ask(gateway, request("/", "X-User: bob\r\n")) == 200);
    CHECK(ask(gateway, request("/")) == 401);
    CHECK(ask(gateway, request("/")) == 401);
    CHECK(ask(gateway, request("/")) == 401);
    CHECK(ask(gateway, request("/")) == 429); // five charges: two admitted, three without a credential
}

TEST_CASE("chains: an error in a later one leaves nothing in flight, with keys of any length")
{
    recorder up(ok);
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "keys:\n  user: [ { header: X-User } ]\nchains:\n  first:\n    store: local\n    rules:\n"
                     "      - { name: at-once, key: [route], algorithm: concurrency, limit: 2 }\n"
                     "  second:\n    store: local\n    rules:\n"
                     "      - { name: quota, key: user, " +
                         by_hour + "100/hour, cost: { header: X-Cost } }\n" +
                         "routes:\n  - { name: all, upstream: up, chains: [ first, second ] }\n"));
    for (int i = 0; i < 5; ++i) // each on a new connection with new buffers
        CHECK(ask(gateway, request("/", "X-User: " + std::string(256, '/') + "\r\nX-Cost: x\r\n")) == 400);
    CHECK(pass(gateway, 3, request("/", "X-User: ann\r\n")) == 3);
}

TEST_CASE("chains: a refusal shows the remaining quota after all charges were given back")
{
    recorder up(ok);
    running_gateway gateway(running_gateway::in_front_of(
        up.server(), "chains:\n  first:\n    store: local\n    rules:\n      - { name: wide, key: [route], " + by_hour +
                         "10/hour }\n  second:\n    store: local\n    rules:\n      - { name: narrow, key: [route], " +
                         by_hour + "1/hour }\nroutes:\n  - { name: all, upstream: up, chains: [ first, second ] }\n"));
    auto client = gateway.connect();
    client.send(request("/"));
    CHECK(field_of(client.read_response(), "RateLimit").starts_with("\"wide\";r=9;"));
    for (int i = 0; i < 3; ++i) {
        client.send(request("/"));
        CHECK(field_of(client.read_response(), "RateLimit").starts_with("\"wide\";r=9;"));
    }
}

TEST_CASE("a store that is full: a refusal by shared counters is 503, not 429")
{
    recorder up(ok);
    const auto yaml = running_gateway::in_front_of(
        up.server(), "keys:\n  user: [ { header: X-User } ]\nchains:\n  api:\n    store: local\n    rules:\n"
                     "      - { name: one, key: user, " +
                         by_hour + "1/hour }\nroutes:\n  - { name: all, upstream: up, chains: [ api ] }\n");
    auto small = yaml;
    small.replace(small.find("max_keys: 10000"), 15, "max_keys: 1");
    running_gateway gateway(small);
    CHECK(ask(gateway, request("/", "X-User: a\r\n")) == 200);
    CHECK(ask(gateway, request("/", "X-User: b\r\n")) == 200); // the one that the shared counter admits
    const auto answer = gateway.ask(request("/", "X-User: c\r\n"));
    CHECK(status_of(answer) == 503);
    CHECK(body_of(answer).find("#temporary-reduced-capacity") != std::string::npos);
    CHECK(!field_of(answer, "Retry-After").empty());
    CHECK(ask(gateway, request("/", "X-User: a\r\n")) == 429);
}

TEST_CASE("shadow: it never refuses, is shown to no client, and gives back no more than it was charged")
{
    recorder up(ok);
    log_pipe pipe;
    running_gateway gateway(
        limited(up.server(),
                "      - { name: real, key: [route], " + by_hour +
                    "100/hour }\n"
                    "      - { name: trial, key: [route], " +
                    by_hour + "2/hour, mode: shadow, outcome: { refund: [ 404 ] } }\n",
                "admin: { address: 127.0.0.1:0 }\nlog: { access: { path: " + pipe.path() + " } }\n"));
    CHECK(pass(gateway, 5, request("/")) == 5);
    for (int i = 0; i < 5; ++i) {
        const auto line = nlohmann::json::parse(pipe.next_line());
        CHECK(line["limit"] == (i < 2 ? "passed" : "shadow_refused"));
        CHECK(line["rule"] == "trial");
        CHECK(line["used"] == std::min(i + 1, 2));
    }
    CHECK(gateway.ask(request("/")).find("trial") == std::string::npos);
    CHECK(metric_at_last(gateway, "headgate_shadow_limited_total{route=\"all\",rule=\"trial\"}", 4) == 4);
    CHECK(metric_at_last(gateway, "headgate_limited_total{route=\"all\",rule=\"trial\"}", 0) == 0);
}

TEST_CASE("exempt: methods, paths and networks count nothing")
{
    recorder up(ok);
    const std::string rule = "      - { name: one, key: [route], " + by_hour + "1/hour }\n";
    running_gateway gateway(
        limited(up.server(), rule, "", "exempt: { methods: [ OPTIONS ], paths: [ /healthz, /public/* ] }"));
    for (int i = 0; i < 3; ++i) {
        CHECK(ask(gateway, request("/", "", "OPTIONS")) == 200);
        CHECK(ask(gateway, request("/healthz")) == 200);
        CHECK(ask(gateway, request("/public/x")) == 200);
    }
    CHECK(ask(gateway, request("/healthz/x")) == 200);                               // counted
    CHECK(ask(gateway, request("/", "X-HTTP-Method-Override: OPTIONS\r\n")) == 429); // K7
    running_gateway inside(limited(up.server(), rule, "", "exempt: { networks: [ 127.0.0.0/8 ] }"));
    CHECK(pass(inside, 5, request("/")) == 5);
}

TEST_CASE("shaping: a request waits in its place, and gives it back when its client leaves")
{
    recorder up(ok);
    running_gateway gateway(limited(up.server(),
                                    "      - { name: funnel, key: [route], algorithm: leaky_bucket, limit: 1/minute, "
                                    "burst: 1, delay: all }\n"
                                    "      - { name: at-once, key: [route], algorithm: concurrency, limit: 9 }\n",
                                    "admin: { address: 127.0.0.1:0 }\n"));
    CHECK(ask(gateway, request("/")) == 200);
    auto waiting = gateway.connect();
    waiting.send(request("/")); // it is delayed by a minute
    CHECK(eventually([&] { return ask(gateway, request("/")) == 429; }));
    CHECK(up.requests().size() == 1);
    waiting.close();
    CHECK(metric_at_last(gateway, "headgate_requests_total{route=\"all\",class=\"none\"}", 1) == 1);
    CHECK(metric(gateway, "headgate_delayed_total{route=\"all\"}") == 1);
    CHECK(up.requests().size() == 1);
    auto next = gateway.connect(); // gets the place
    next.send(request("/"));
    CHECK(metric_at_last(gateway, "headgate_connections{state=\"active\"}", 1) == 1);
    gateway.app().stop(); // does not wait for the delay
}

TEST_CASE("shaping: a delayed request continues after its delay")
{
    recorder up(ok);
    running_gateway gateway(limited(up.server(), "      - { name: funnel, key: [route], algorithm: leaky_bucket, "
                                                 "limit: 20/second, burst: 9, delay: all }\n"));
    const auto began = std::chrono::steady_clock::now();
    CHECK(pass(gateway, 5, request("/")) == 5);
    CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds{200}); // four waits of 50 ms
}
