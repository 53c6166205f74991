#include "config/load.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;

TEST_CASE("every feature in gateway.yaml is implemented")
{
    const auto result = load_file("gateway.yaml", test_environment());
    REQUIRE(result.config);
    CHECK(joined(not_built_yet(*result.config)) == "");
}

TEST_CASE("a feature that is configured but not implemented is an error at its place")
{
    const auto result = load_file("tests/data/config/good/full.yaml", test_environment());
    REQUIRE(result.config);
    const auto problems = not_built_yet(*result.config);
    CHECK(has_errors(problems));
    for (const auto& p : problems) {
        if (p.level == severity::warning)
            continue;
        CAPTURE(to_string(p));
        CHECK(p.line > 0);
        CHECK(p.message.find("is not implemented in this version; remove it") != std::string::npos);
        CHECK(p.path.find("answers") == std::string::npos); // `answers` is implemented completely
    }
}

TEST_CASE("a source that is not implemented is found in plans too")
{
    const auto result =
        load_text("listeners: [ { address: 127.0.0.1:0 } ]\n"
                  "plans: { names: [ free ], default: free, sources: [ { client_certificate: subject } ] }\n"
                  "upstreams: { demo: { echo: true } }\n"
                  "routes: [ { name: all, upstream: demo } ]\n",
                  "gateway.yaml", test_environment());
    REQUIRE(result.config);
    CHECK(joined(not_built_yet(*result.config)).find("plans.sources[0]") != std::string::npos);
}

namespace {

std::string with_redis(const std::string& store_options, const std::string& rule_options = "")
{
    return "listeners: [ { address: 127.0.0.1:0 } ]\n"
           "stores:\n"
           "  shared: { type: redis, url: redis://127.0.0.1:6379" +
           store_options +
           " }\n"
           "chains:\n"
           "  api: { rules: [ { name: r, key: client_ip, algorithm: gcra, limit: 5/s" +
           rule_options +
           " } ] }\n"
           "upstreams: { demo: { echo: true } }\n"
           "routes: [ { name: all, chains: api, upstream: demo } ]\n";
}

std::vector<problem> problems_of(const std::string& yaml)
{
    const auto result = load(yaml);
    CHECK(joined(result.problems) == "");
    return result.config ? not_built_yet(*result.config) : std::vector<problem>{};
}

} // namespace

TEST_CASE("a Redis store with nothing but its url is open in an outage, with a warning that the default will change")
{
    const auto result = load(with_redis(""));
    REQUIRE(result.config);
    CHECK(result.config->stores.at("shared").outage == on_outage::open);
    const auto problems = not_built_yet(*result.config);
    CHECK(!has_errors(problems));
    CHECK(joined(problems) ==
          "t.yaml:3:3: warning: stores.shared.on_outage: this is not given, so it is `open`: requests pass without "
          "limits while Redis does not answer. A later version will count locally, and `local` will be the default; "
          "write `on_outage: open` or `on_outage: closed` to choose\n");
    CHECK(joined(problems_of(with_redis(", on_outage: open"))) == "");
    CHECK(joined(problems_of(with_redis(", on_outage: closed"))) == "");
}

TEST_CASE("on_outage: local is refused with what to write instead, of a store and of a rule")
{
    const std::string message = "counting locally while Redis does not answer is not implemented in this version; "
                                "write `open` (requests pass without limits) or `closed` (requests are refused)\n";
    CHECK(joined(problems_of(with_redis(", on_outage: local"))) == "t.yaml:3:66: stores.shared.on_outage: " + message);
    CHECK(joined(problems_of(with_redis(", on_outage: open", ", on_outage: local"))) ==
          "t.yaml:5:86: chains.api.rules[0].on_outage: " + message);
}
