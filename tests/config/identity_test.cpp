// The spelling of identities: what each form means, and what a message tells to write instead.
#include "config/identity.hpp"
#include "config/summary.hpp"
#include "tests/config/support.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace headgate::config::testing;

namespace {

const gateway_config& example()
{
    static const auto result =
        load("listeners: [ { address: 127.0.0.1:0 } ]\n"
             "stores: { local: { type: memory } }\n"
             "jwt:\n  a: { algorithms: HS256, secret: aaaa }\n  b: { algorithms: HS256, secret: bbbb }\n"
             "keys:\n"
             "  user: [ { header: X-API-Key }, client_ip ]\n"
             "  one: [ { cookie: session } ]\n"
             "  claims: [ { jwt_claim: { claim: \"https://x/id\", provider: a } },\n"
             "            { jwt_claim: { claim: sub, provider: a } },\n"
             "            { jwt_claim: { claim: sub, provider: b } }, user ]\n"
             "  net: [ client_ip: { ipv4_prefix: 24, ipv6_prefix: 48 } ]\n"
             "chains: { c: { rules: [ { name: r, key: [ user, one, claims, net ],\n"
             "  algorithm: gcra, limit: 1/s } ] } }\n"
             "upstreams: { demo: { echo: true } }\n"
             "routes: [ { name: all, chains: c, upstream: demo } ]\n");
    REQUIRE_MESSAGE(result.config.has_value(), joined(result.problems));
    return *result.config;
}

// Returns the full spelling of what the text means, or the complaint.
std::string read(const std::string& text, const std::vector<std::string>& key, const std::string& setting = "")
{
    std::vector<std::vector<identity_source>> sources;
    for (const auto& name : key)
        sources.push_back(sources_of(example(), name));
    const auto meant = parse_identity(text, sources, setting);
    return meant ? meant.spelling() : meant.complaint;
}

std::string with_override(const std::string& key, const std::string& entry)
{
    return "listeners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory } }\n"
           "keys: { user: [ { header: X-API-Key }, client_ip ] }\n"
           "chains: { api: { rules: [ { name: r, key: " +
           key + ", algorithm: gcra, limit: 1/s, overrides: { " + entry +
           " } } ] } }\n"
           "upstreams: { demo: { echo: true } }\n"
           "routes: [ { name: all, chains: api, upstream: demo } ]\n";
}

} // namespace

TEST_CASE("identities: every form that can mean only one source")
{
    struct row
    {
        const char* text;
        std::vector<std::string> key;
        const char* full;
    };
    const row rows[] = {
        {"user/header:X-API-Key=k1", {"user"}, "user/header:X-API-Key=k1"},
        {"header:x-api-key=k1", {"user"}, "user/header:X-API-Key=k1"},
        {"X-API-Key=k1", {"user"}, "user/header:X-API-Key=k1"},
        {"header=k1", {"user"}, "user/header:X-API-Key=k1"},
        {"user/X-API-Key=k1", {"user"}, "user/header:X-API-Key=k1"},
        {"client_ip=203.0.113.7", {"user"}, "user/client_ip=203.0.113.7"},
        {"client_ip=::ffff:203.0.113.7", {"user"}, "user/client_ip=203.0.113.7"},
        {"client_ip=2001:DB8::", {"user"}, "user/client_ip=2001:db8::"},
        {"tom", {"one"}, "one/cookie:session=tom"},
        {"one=tom", {"one"}, "one/cookie:session=tom"},
        {"a%2cb%3D%25%2F%20", {"one"}, "one/cookie:session=a%2Cb%3D%25%2F%20"},
        {"one=a=b/c", {"one"}, "one/cookie:session=a%3Db%2Fc"},
        {"203.0.113.7", {"client_ip"}, "client_ip/client_ip=203.0.113.7"},
        {"Api.Example", {"host"}, "host/host=api.example"},
        {"[0::AB]", {"host"}, "host/host=[::ab]"},
        {"sub@b=x", {"claims"}, "claims/jwt_claim:sub@b=x"},
        {"https:%2F%2Fx%2Fid=7", {"claims"}, "claims/jwt_claim:https:%2F%2Fx%2Fid=7"},
        {"one=tom", {"one", "host"}, "one/cookie:session=tom"},
        {"tom,a.example", {"one", "host"}, "one/cookie:session=tom,host/host=a.example"},
        {"host=a", {"client_ip", "host"}, "host/host=a"},
        {"user/client_ip=1.2.3.4", {"user", "client_ip"}, "user/client_ip=1.2.3.4"},
        {"client_ip/client_ip=1.2.3.4", {"user", "client_ip"}, "client_ip/client_ip=1.2.3.4"},
    };
    for (const auto& [text, key, full] : rows) {
        CAPTURE(text);
        CHECK(read(text, key) == full);
        CHECK(read(full, key) == full);
    }
}

TEST_CASE("identities: what can mean several sources is refused, with the line to write instead")
{
    CHECK(read("203.0.113.7", {"user"}, "unlimited") ==
          "`203.0.113.7` can mean more than one source; write `X-API-Key=203.0.113.7: unlimited` or "
          "`client_ip=203.0.113.7: unlimited`");
    CHECK(read("tom", {"user"}, "5/s") == "`tom` can mean more than one source; write `X-API-Key=tom: 5/s`");
    CHECK(read("2001:db8::", {"user"}, "5/s") == "`2001:db8::` can mean more than one source; write "
                                                 "`\"X-API-Key=2001:db8::\": 5/s` or `\"client_ip=2001:db8::\": 5/s`");
    CHECK(read("10.1.1.1", {"client_ip", "host"}, "unlimited") ==
          "`10.1.1.1` can mean more than one source; write `client_ip=10.1.1.1: unlimited` or `host=10.1.1.1: "
          "unlimited`");
    CHECK(read("client_ip=1.2.3.4", {"user", "client_ip"}, "blocked") ==
          "`client_ip=1.2.3.4` can mean more than one source; write `user/client_ip=1.2.3.4: blocked` or "
          "`client_ip/client_ip=1.2.3.4: blocked`");
    CHECK(read("x,a", {"user", "host"}, "blocked") ==
          "`x` can mean more than one source; write `\"X-API-Key=x,a\": blocked`");
    // Each line is complete: it settles every part of the key.
    CHECK(read("10.0.0.1,x", {"user", "claims"}, "5/s") ==
          "`10.0.0.1` can mean more than one source; write `\"X-API-Key=10.0.0.1,https:%2F%2Fx%2Fid=x\": 5/s` or "
          "`\"X-API-Key=10.0.0.1,sub@a=x\": 5/s` or `\"X-API-Key=10.0.0.1,sub@b=x\": 5/s` or "
          "`\"X-API-Key=10.0.0.1,X-API-Key=x\": 5/s`, or name another source");
    CHECK(read("a,b", {"user"}, "5/s") ==
          "`a,b` names 2 parts, and the key has 1; a comma in a value is written %2C; write `X-API-Key=a%2Cb: 5/s`");
    CHECK(read("x,y", {"user", "client_ip"}, "5/s") == "`y` is no value of client_ip/client_ip: it is not an address");
    CHECK(read("sub=x", {"claims"}) == "`sub=x` can mean more than one source; write `sub@a=x` or `sub@b=x`");
}

TEST_CASE("identities: other mistakes")
{
    CHECK(read("X-API-Kye=tom", {"user"}) == "no source is called `X-API-Kye`; did you mean `X-API-Key`?");
    CHECK(read("YWJj==", {"one"}, "5/s") == "no source is called `YWJj`; write `YWJj%3D%3D: 5/s`");
    CHECK(read("client_ip=tom", {"user"}) == "`client_ip=tom` is no value of user/client_ip: it is not an address");
    CHECK(
        read("10.0.0.9", {"net"}, "5/s") ==
        "`10.0.0.9` is no value of net/client_ip: addresses are counted by their first 24 bits; write `10.0.0.0: 5/s`");
    CHECK(read("50%", {"one"}) == "`%` begins an escape such as %2C; write `%25` for the character itself");
    CHECK(read("a,b", {"one"}, "5/s") ==
          "`a,b` names 2 parts, and the key has 1; a comma in a value is written %2C; write `a%2Cb: 5/s`");
    CHECK(read("one=", {"one"}) == "`one=` is no value of one/cookie:session: the value is missing");
}

TEST_CASE("overrides: an ambiguous entry is an error at its place, and check shows what the others mean")
{
    auto result = load(with_override("user", "203.0.113.7: unlimited"));
    CHECK(joined(result.problems)
              .find(": chains.api.rules[0].overrides.203.0.113.7: `203.0.113.7` can "
                    "mean more than one source; write `X-API-Key=203.0.113.7: unlimited` or") != std::string::npos);
    result = load(with_override("[ client_ip, method ]", "PUT: unlimited"));
    CHECK(joined(result.problems).find("write `method=PUT: unlimited`") != std::string::npos);
    result = load(with_override("user", "X-API-Key=k1: unlimited, header:x-api-key=k1: 5/s"));
    CHECK(joined(result.problems).find("is the same identity as `") != std::string::npos);
    result = load(with_override("user", "X-API-Key=k1: unlimited, client_ip=203.0.113.7: 5/s"));
    REQUIRE(result.config);
    const auto words = summarise(*result.config);
    CHECK(words.find("      user/header:X-API-Key=k1: unlimited\n") != std::string::npos);
    CHECK(words.find("      user/client_ip=203.0.113.7: 5/s\n") != std::string::npos);
}

TEST_CASE(
    "plans.overrides: an ambiguous entry is an error with the line to write, and check shows what the others mean")
{
    const auto with_plans = [](const std::string& entry) {
        return "listeners: [ { address: 127.0.0.1:0 } ]\nstores: { local: { type: memory } }\n"
               "keys:\n  user: [ { header: X-API-Key }, client_ip ]\n  tenant: [ { query: t }, { header: x-api-key } "
               "]\n"
               "plans: { names: [ free, pro ], default: free, overrides: { " +
               entry +
               " } }\n"
               "chains:\n  api:\n    rules:\n"
               "      - { name: r, key: user, algorithm: gcra, limit: 1/s, plans: { pro: 5/s } }\n"
               "      - { name: s, key: [ tenant, host ], algorithm: gcra, limit: 1/s, plans: { pro: 5/s } }\n"
               "upstreams: { demo: { echo: true } }\n"
               "routes: [ { name: all, chains: api, upstream: demo } ]\n";
    };
    const auto complaint = [&](const std::string& entry) { return joined(load(with_plans(entry)).problems); };
    CHECK(
        complaint("alice: pro")
            .find("plans.overrides.alice: `alice` can mean more than one source; write `host=alice: pro` or `t=alice: "
                  "pro` or `x-api-key=alice: pro`") != std::string::npos);
    CHECK(complaint("\"t=a,b\": pro").find("a comma in a value is written %2C; write `t=a%2Cb: pro`") !=
          std::string::npos);
    const auto of_two = complaint("\"client_ip=10.0.0.1,host=a\": pro");
    CHECK(of_two.find("this names one source; a comma in a value is written %2C") != std::string::npos);
    CHECK(of_two.find("; write") == std::string::npos); // no line that would mean something else
    // Each line that a message proposes is accepted, and check shows it in full.
    const auto result =
        load(with_plans("X-API-Key=alice: pro, t=alice: pro, host=alice: pro, client_ip=10.0.0.1: pro"));
    REQUIRE_MESSAGE(result.config, joined(result.problems));
    const auto words = summarise(*result.config);
    CHECK(words.find("plans of single identities, wherever their source identifies the request\n") !=
          std::string::npos);
    for (const auto* line :
         {"  host/host=alice: pro\n", "/query:t=alice: pro\n", "=alice: pro\n", "  user/client_ip=10.0.0.1: pro\n"}) {
        CAPTURE(line);
        CHECK(words.find(line) != std::string::npos);
    }
}
