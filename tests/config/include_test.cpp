#include "tests/config/support.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

// An environment with these files only.
environment environment_with(std::map<std::string, std::string> files)
{
    return {.variable = [](const std::string&) { return std::nullopt; },
            .read = [files = std::move(files)](const std::filesystem::path& file, std::uintmax_t) -> file_text {
                const auto it = files.find(file.lexically_normal().string());
                return it == files.end() ? file_text{{}, "there is no such file"} : file_text{it->second, {}};
            }};
}

const std::string base = "listeners: [ { address: 127.0.0.1:0 } ]\nupstreams: { demo: { echo: true } }\n";

} // namespace

TEST_CASE("maps of names are merged, lists are appended to the including file's, in order")
{
    const auto env =
        environment_with({{"conf/a.yaml", "routes: [ { name: a, match: { path: /a }, upstream: extra } ]\n"},
                          {"conf/b.yaml", "upstreams: { extra: { echo: true } }\n"
                                          "routes: [ { name: b, match: { path: /b }, upstream: demo } ]\n"}});
    const auto result = load_text(base + "include: [ a.yaml, b.yaml ]\nroutes: [ { name: own, match: { path: /o }, "
                                         "upstream: demo } ]\n",
                                  "conf/gateway.yaml", env);
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    REQUIRE(result.config->routes.size() == 3);
    CHECK(result.config->routes[0].name == "own");
    CHECK(result.config->routes[1].name == "a");
    CHECK(result.config->routes[2].name == "b");
    CHECK(result.config->upstreams.size() == 2);
}

TEST_CASE("a file that includes itself is a cycle")
{
    const auto result = load_text("include: me.yaml\n" + base + "routes: [ { name: r, upstream: demo } ]\n", "me.yaml",
                                  environment_with({{"me.yaml", "x"}}));
    CHECK(joined(result.problems) ==
          "me.yaml:1:10: include: the files include each other in a cycle: me.yaml -> me.yaml\n");
}

TEST_CASE("includes are at most 8 levels deep")
{
    std::map<std::string, std::string> files;
    for (int i = 0; i < 20; ++i)
        files[std::to_string(i) + ".yaml"] = "include: " + std::to_string(i + 1) + ".yaml\n";
    const auto result = load_text(files["0.yaml"], "start.yaml", environment_with(files));
    CHECK(joined(result.problems).find("includes are more than 8 levels deep") != std::string::npos);
}

TEST_CASE("a setting that is not a list or a map of names may be in one file only")
{
    const auto result = load_text(base + "include: a.yaml\nworkers: 2\nroutes: [ { name: r, upstream: demo } ]\n",
                                  "g.yaml", environment_with({{"a.yaml", "workers: 3\n"}}));
    CHECK(joined(result.problems) ==
          "a.yaml:1:1: workers: this is given in two files, first at g.yaml:4:1; keep one of them\n");
}

TEST_CASE("every relative path starts at the file that contains it")
{
    const auto env =
        environment_with({{"conf/teams/keys.yaml", "api_keys: { theirs: { file: keys/theirs } }\n"
                                                   "jwt: { theirs: { algorithms: [ RS256 ], jwks: ../jwks.json } }\n"},
                          {"conf/429.html", "<p>"},
                          {"conf/own/429.txt", "-"}});
    const auto result =
        load_text(base + "include: teams/keys.yaml\n"
                         "log: { access: { path: log/access.log } }\n"
                         "stores:\n"
                         "  local: { type: memory, snapshot: { path: ./counters } }\n"
                         "  shared: { type: redis, url: \"rediss://r\", tls: { ca: ca.crt, certificate: "
                         "c.crt, key: /etc/c.key } }\n"
                         "jwt: { ours: { algorithms: [ RS256 ], public_key: jwt.pem } }\n"
                         "api_keys: { ours: { file: keys } }\n"
                         "answers: { body_file: 429.html }\n"
                         "routes: [ { name: all, upstream: demo, answers: { body_file: own/429.txt } } ]\n",
                  "conf/gateway.yaml", env);
    CHECK(!has_errors(result.problems));
    REQUIRE(result.config);
    const auto& config = *result.config;
    CHECK(config.log.access.path == "conf/log/access.log");
    CHECK(config.stores.at("local").snapshot->path == "conf/counters");
    CHECK(config.stores.at("shared").tls->ca == "conf/ca.crt");
    CHECK(config.stores.at("shared").tls->certificate == "conf/c.crt");
    CHECK(config.stores.at("shared").tls->key == "/etc/c.key");
    CHECK(config.jwt.at("ours").public_key == "conf/jwt.pem");
    CHECK(config.jwt.at("theirs").jwks == "conf/jwks.json");
    CHECK(config.api_keys.at("ours").file == "conf/keys");
    CHECK(config.api_keys.at("theirs").file == "conf/teams/keys/theirs");
    CHECK(config.answers.body_file == "conf/429.html");
    CHECK(config.routes.at(0).answers->body_file == "conf/own/429.txt");
}

TEST_CASE("the words of log.access.path are not paths")
{
    for (const std::string word : {"off", "-"}) {
        const auto result = load_text(base + "log: { access: { path: \"" + word + "\" } }\n" +
                                          "routes: [ { name: all, upstream: demo } ]\n",
                                      "conf/gateway.yaml", environment_with({}));
        REQUIRE(result.config);
        CHECK(result.config->log.access.path == word);
    }
}
