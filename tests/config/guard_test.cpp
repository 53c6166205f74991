// Guards against invented identities, and the warning where one is missing.
#include "config/guard.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;
using namespace std::chrono_literals;

namespace {

// `key` is the definition of the key `user`; `rule` is the key of the rule and more.
load_result with(const std::string& key, const std::string& rule = "key: user")
{
    return load("listeners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory } }\n"
                "jwt: { login: { algorithms: HS256, secret: aaaa } }\napi_keys: { known: { file: /k } }\n"
                "keys:\n  any: [ { jwt_claim: sub }, { api_key: { table: known } } ]\n  user: " +
                key + "\nchains: { api: { rules: [ { name: any, key: any, algorithm: gcra, limit: 1/s }, { name: r, " +
                rule +
                ", algorithm: gcra, limit: 1/s } ] } }\n"
                "upstreams: { demo: { echo: true } }\n"
                "routes: [ { name: all, match: { path: \"/{id}\" }, chains: api, upstream: demo } ]\n");
}

bool warns(const load_result& result)
{
    return joined(result.problems).find("warning: keys.user: a client that makes up another") != std::string::npos;
}

} // namespace

TEST_CASE("guards: a limit on what any client can make up is warned of, unless a guard covers it")
{
    for (const char* source : {"header: X-A", "cookie: sid", "query: key"}) {
        CAPTURE(source);
        const auto in = "{ " + std::string(source) + " }";
        CHECK(warns(with("[ " + in + " ]")));
        CHECK(warns(with("[ client_ip, " + in + " ]")));
        CHECK(warns(with("[ { jwt_claim: sub }, " + in + " ]")));
        CHECK(warns(with("[ " + in + " ]", "key: [ client_ip, user ]")));
        CHECK(!warns(with("[ " + in + " ]", "key: user, mode: shadow")));
        CHECK(joined(with("{ sources: [ " + in + " ], new_identities: 100/hour }").problems) == "");
    }
    for (const char* source : {"client_ip", "{ jwt_claim: sub }", "{ api_key: { table: known } }", "route"}) {
        CAPTURE(source);
        CHECK(joined(with("[ " + std::string(source) + " ]").problems) == "");
    }
}

TEST_CASE("guards: the short and the long form")
{
    const auto brief = with("{ sources: [ { header: X-A } ], new_identities: 100/hour }");
    REQUIRE(brief.config);
    const auto& guard = *brief.config->keys.at("user").new_identities;
    CHECK(guard.rule.capacity == 100);
    CHECK(guard.rule.period == 1h);
    CHECK(guard.ipv4_prefix == 32);
    CHECK(guard.ipv6_prefix == 64);
    CHECK(guarded_keys(brief.config->routes.front(), *brief.config) == std::vector<std::string>{"user"});
    const auto full = with("{ sources: [ { header: X-A } ], new_identities: { limit: 5 per 90s, ipv4_prefix: 24, "
                           "ipv6_prefix: 48, max_identities: 2000 } }");
    REQUIRE(full.config);
    CHECK(in_words("user", *full.config->keys.at("user").new_identities) ==
          "5 per 90s for each address (IPv4 /24, IPv6 /48), at most 2000 identities remembered");
}
