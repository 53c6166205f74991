// A reload and the connections to upstreams (O1): those of an unchanged upstream are kept, the others are closed.
#include "gateway/load_configuration.hpp"
#include "tests/admin/support.hpp"
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <fstream>

using namespace headgate::tests;

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string answer(const std::string& body)
{
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// `upstreams` are lines; answers of the route to `to` have a header with `version`.
std::string configuration(const std::string& upstreams, const std::string& to, const std::string& version)
{
    return "workers: 1\nlisteners:\n  - address: 127.0.0.1:0\nupstreams:\n" + upstreams +
           "routes:\n  - name: all\n    upstream: " + to + "\n    headers: { response: { set: { X-Version: " + version +
           " } } }\n";
}

std::string upstream(const std::string& name, const raw_upstream& server, const std::string& more = "")
{
    return "  " + name + ": { servers: [ 127.0.0.1:" + std::to_string(server.port()) + " ]" + more + " }\n";
}

// Sends requests on one connection until an answer is of this version, and returns it.
std::string ask_until(raw_connection& client, const std::string& version)
{
    std::string result;
    CHECK(eventually([&] {
        client.send(get);
        result = client.read_response();
        return field_of(result, "X-Version") == version;
    }));
    return result;
}

} // namespace

TEST_CASE("reload: O1, an unchanged upstream keeps its connections when others are added, removed or reordered")
{
    raw_upstream kept(always(answer("kept"))), other(always(answer("other")));
    running_gateway gateway(configuration(upstream("m", kept), "m", "one"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "one")) == "kept");
    gateway.reload(configuration(upstream("a", other) + upstream("m", kept) + upstream("z", other), "m", "two"));
    CHECK(body_of(ask_until(client, "two")) == "kept");
    gateway.reload(configuration(upstream("m", kept) + "  b: { echo: true }\n", "m", "three"));
    CHECK(body_of(ask_until(client, "three")) == "kept");
    CHECK(kept.connections() == 1);
    CHECK(other.connections() == 0);
}

TEST_CASE("reload: an upstream that changes gets new connections, and the old ones are closed")
{
    raw_upstream before(always(answer("before"))), after(always(answer("after")));
    running_gateway gateway(configuration(upstream("m", before), "m", "one"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "one")) == "before");
    SUBCASE("other servers")
    {
        gateway.reload(configuration(upstream("m", after), "m", "two"));
        CHECK(body_of(ask_until(client, "two")) == "after");
        CHECK(before.connections() == 1);
    }
    SUBCASE("another timeout")
    {
        gateway.reload(configuration(upstream("m", before, ", timeouts: { idle: 7s }"), "m", "two"));
        CHECK(body_of(ask_until(client, "two")) == "before");
        CHECK(before.connections() == 2);
    }
    SUBCASE("removed")
    {
        gateway.reload(configuration(upstream("n", after), "n", "two"));
        CHECK(body_of(ask_until(client, "two")) == "after");
    }
    before.wait_for_ended(1);
}

TEST_CASE("reload: a request in flight ends where it began")
{
    std::mutex gate;
    gate.lock();
    raw_upstream before([&](raw_upstream& self, raw_connection& from) {
        self.read_request(from);
        std::lock_guard open(gate);
        from.send(answer("before"));
        self.read_request(from);
    });
    raw_upstream after(always(answer("after")));
    running_gateway gateway(configuration(upstream("m", before), "m", "one"));
    auto slow = gateway.connect();
    slow.send(get);
    before.wait_for_received(1);
    gateway.reload(configuration(upstream("m", after), "m", "two"));
    auto client = gateway.connect();
    CHECK(body_of(ask_until(client, "two")) == "after");
    gate.unlock();
    const auto result = slow.read_response();
    CHECK(field_of(result, "X-Version") == "one");
    CHECK(body_of(result) == "before");
    before.wait_for_ended(1);
}

TEST_CASE("reload: log.level follows")
{
    const auto before = spdlog::get_level();
    raw_upstream server(always(answer("any")));
    const auto with_level = [&](const std::string& level) {
        return configuration(upstream("m", server), "m", "one") + "log: { level: " + level + " }\n";
    };
    running_gateway gateway(with_level("error"));
    CHECK(spdlog::get_level() == spdlog::level::err);
    gateway.reload(with_level("debug"));
    CHECK(spdlog::get_level() == spdlog::level::debug);
    gateway.reload(with_level("warning"));
    CHECK(spdlog::get_level() == spdlog::level::warn);
    spdlog::set_level(before);
}

namespace {

// A file of API keys, and a gateway that answers 401 to a key that is not in it.
class key_file
{
    temporary_folder folder_;

public:
    // The digest is that of `abc`.
    const std::string alice = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad alice pro\n";
    const std::string path = folder_.file("keys");

    void write(const std::string& text) const { std::ofstream(path) << text; }

    std::string configuration(const std::string& version, const std::string& plan_source) const
    {
        return "workers: 1\nlisteners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory } }\n"
               "api_keys: { ours: { file: " +
               path +
               " } }\nkeys: { user: { sources: [ api_key: { table: ours } ], missing: refuse } }\n"
               "plans: { names: [ free, pro ], default: free, sources: [ " +
               plan_source +
               " ] }\nchains: { api: { rules: [ { name: r, key: user, algorithm: gcra, limit: 1000/s, plans: { pro: "
               "2000/s } } ] } }\nupstreams: { up: { echo: true } }\nroutes:\n"
               "  - { name: version, match: { path: /version-" +
               version + " }, upstream: up }\n  - { name: all, chains: api, upstream: up }\n";
    }

    // The problems that a start reports, or a reload of a gateway that runs with these credentials.
    std::vector<std::string> problems(const std::string& plan_source, const headgate::credentials* running = nullptr)
    {
        std::ofstream(folder_.file("gateway.yaml")) << configuration("any", plan_source);
        std::vector<std::string> all;
        for (const auto& problem : headgate::load_configuration(folder_.file("gateway.yaml"), running).problems) {
            all.push_back(to_string(problem));
            all.back().erase(0, folder_.file("").size());
        }
        return all;
    }
};

const std::string from_table = "api_key: { table: ours }";

} // namespace

TEST_CASE("reload: a file of API keys without a byte keeps the keys; one with only comments removes them")
{
    key_file keys;
    keys.write(keys.alice);
    running_gateway gateway(keys.configuration("zero", from_table));
    auto client = gateway.connect();
    int reloads = 0;
    const auto status_after_reload = [&] {
        const auto version = std::to_string(++reloads);
        gateway.reload(keys.configuration(version, from_table));
        CHECK(eventually([&] {
            client.send("GET /version-" + version + " HTTP/1.1\r\nHost: a\r\n\r\n");
            return status_of(client.read_response()) == 200;
        }));
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: abc\r\n\r\n");
        return status_of(client.read_response());
    };
    CHECK(status_after_reload() == 200);
    keys.write("");
    CHECK(status_after_reload() == 200);
    CHECK(status_after_reload() == 200); // again: the keys that were kept are kept
    keys.write("# no keys\n");
    CHECK(status_after_reload() == 401);
    keys.write("");
    CHECK(status_after_reload() == 401);
    keys.write(keys.alice);
    CHECK(status_after_reload() == 200);
}

TEST_CASE("reload: it is said that a file of API keys without a byte keeps the keys, and at a start that it has none")
{
    key_file keys;
    headgate::credentials running;
    auto table = headgate::identity::api_key_table::from_text(keys.alice, "keys").table;
    REQUIRE(table);
    running.tables.push_back({"ours", std::make_shared<const headgate::identity::api_key_table>(std::move(*table))});
    keys.write("");
    CHECK(keys.problems(from_table, &running) ==
          std::vector<std::string>{"gateway.yaml:4:27: warning: api_keys.ours.file: " + keys.path +
                                   " has 0 bytes; the keys that were read before (1) stay in use. To remove them all, "
                                   "leave a line with a comment"});
    CHECK(keys.problems(from_table) ==
          std::vector<std::string>{"gateway.yaml:4:27: warning: api_keys.ours.file: " + keys.path +
                                   " has 0 bytes, so no key is known; if that is meant, write a line with a comment"});
    keys.write("# no keys\n");
    CHECK(keys.problems(from_table, &running).empty());
    CHECK(keys.problems(from_table).empty());
}

TEST_CASE("reload: a plan that does not exist refuses the table of API keys with its line")
{
    key_file keys;
    const std::string bob = "015f7e6bc5aeaf483724089e9252cc13b50951a6b69412522765cff4d780306e bob ";
    const auto line_2 =
        "api_keys.ours.file: " + keys.path + ":2: the plan `prop` is not in `plans.names`; did you mean `pro`?";
    keys.write(keys.alice + bob + "prop\n");
    CHECK(keys.problems(from_table) == std::vector<std::string>{"gateway.yaml:4:27: " + line_2});
    // Not read from this table: no harm, but certainly a mistake.
    CHECK(keys.problems("header: X-Plan") ==
          std::vector<std::string>{"gateway.yaml:4:27: warning: " + line_2 +
                                   "; `plans.sources` does not read this table, so its plans have no effect"});
    keys.write(keys.alice + bob + "free\n");
    CHECK(keys.problems(from_table).empty());

    running_gateway gateway(keys.configuration("zero", from_table));
    keys.write(keys.alice + bob + "prop\n");
    CHECK_THROWS_WITH(gateway.reload(keys.configuration("one", from_table)), doctest::Contains(":2: the plan `prop`"));
    CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: k2\r\n\r\n")) == 200);
}
