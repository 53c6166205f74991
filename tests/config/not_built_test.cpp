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
