// Secrets: their sources, and that they are not shown.
#include "config/summary.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

std::string with_token(const std::string& token)
{
    return "listeners: [ { address: 127.0.0.1:0 } ]\nadmin: { token: " + token +
           " }\nupstreams: { demo: { echo: true } }\nroutes: [ { name: all, upstream: demo } ]\n";
}

std::string token_of(const std::string& token)
{
    const auto result = load(with_token(token));
    CHECK(joined(result.problems) == "");
    return result.config ? result.config->admin->token.reveal() : "(not loaded)";
}

} // namespace

TEST_CASE("a variable may be the value or a part of it; $${ is a literal ${")
{
    CHECK(token_of("\"${HEADGATE_TEST_TOKEN}\"") == "tok-secret");
    CHECK(token_of("\"a-${HEADGATE_TEST_TOKEN}-${HEADGATE_TEST_TOKEN}\"") == "a-tok-secret-tok-secret");
    CHECK(token_of("\"$${HOME} $5 $\"") == "${HOME} $5 $");
    CHECK(token_of("file:tests/data/config/good/secret.txt") == "not-a-real-password");
}

TEST_CASE("no summary shows a secret or what came from the environment")
{
    const auto result = load_file("tests/data/config/good/full.yaml", test_environment());
    REQUIRE(result.config);
    const auto shown = summarise(*result.config);
    for (const char* hidden : {"tok-secret", "url-pass", "not-a-real-password"}) {
        CAPTURE(hidden);
        CHECK(shown.find(hidden) == std::string::npos);
    }
    std::ostringstream stream;
    stream << result.config->admin->token;
    CHECK(stream.str() == "***");
}

TEST_CASE("no message repeats a value from the environment")
{
    auto text = with_token("\"${HEADGATE_TEST_TOKEN}\"");
    text += "drain_timeout: ${HEADGATE_TEST_TOKEN}\nlog: { level: \"${HEADGATE_TEST_TOKEN}\" }\n"
            "stores: { x: { type: redis, url: \"${HEADGATE_TEST_TOKEN}\" } }\n";
    text.replace(text.find("upstream: demo"), 14, "upstream: \"${HEADGATE_TEST_TOKEN}\"");
    const auto result = load(text);
    CHECK(result.problems.size() == 4);
    CHECK(joined(result.problems).find("tok-secret") == std::string::npos);
}
