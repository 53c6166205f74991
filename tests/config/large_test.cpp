// A configuration of 10,000 routes and 1,000 chains loads completely, and errors are reported at their line.
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

std::string large(const std::string& last_upstream)
{
    std::string out = "listeners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory } }\n"
                      "keys: { user: [ client_ip ] }\nupstreams: { demo: { echo: true } }\nchains:\n";
    for (int i = 0; i < 1'000; ++i)
        out += "  c" + std::to_string(i) +
               ":\n    rules:\n      - { name: minute, key: user, algorithm: token_bucket, limit: 60/minute }\n"
               "      - { name: day, key: user, algorithm: fixed_window, limit: 10000/day }\n";
    out += "routes:\n";
    for (int i = 0; i < 10'000; ++i) {
        const auto n = std::to_string(i);
        out += "  - name: r" + n + "\n    match: { host: h" + std::to_string(i % 100) + ".example.com, path: /v1/r" +
               n + "/*, methods: [ GET, POST ] }\n    chains: [ c" + std::to_string(i % 1'000) +
               " ]\n    upstream: " + (i == 9'999 ? last_upstream : "demo") + "\n";
    }
    return out;
}

} // namespace

TEST_CASE("10,000 routes and 1,000 chains load completely")
{
    const auto result = load(large("demo"));
    CHECK(joined(result.problems) == "");
    REQUIRE(result.config);
    CHECK(result.config->routes.size() == 10'000);
    CHECK(result.config->chains.size() == 1'000);
    CHECK(result.config->routes[9'999].match.paths.at(0) == "/v1/r9999/*");
}

TEST_CASE("the last of 10,000 routes has its mistake reported at its line")
{
    const auto result = load(large("dmeo"));
    CHECK(joined(result.problems) ==
          "t.yaml:44006:15: routes[9999].upstream: `dmeo` is not in `upstreams`; did you mean "
          "`demo`?\n");
}

TEST_CASE("ten thousand equal mistakes are all reported")
{
    auto text = large("demo");
    for (auto at = text.find("upstream: demo"); at != std::string::npos; at = text.find("upstream: demo", at))
        text.replace(at, 14, "upstream: deno");
    CHECK(load(text).problems.size() == 10'000);
}
