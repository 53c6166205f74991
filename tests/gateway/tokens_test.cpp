// Tokens as keys through the real gateway: the counter of a token, bad tokens, and overrides.
#include "tests/admin/support.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace headgate::tests;
using headgate::config::jwt_algorithm;
using namespace headgate::identity::testing;

namespace {

const std::string secret = "a secret of thirty-two bytes or more";

std::string with_token(const std::string& token, const std::string& more = "")
{
    return "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token + "\r\n" + more + "\r\n";
}

std::string token_of(const std::string& payload, const std::string& by = secret)
{
    return make_token(signing_key::secret(by), jwt_algorithm::HS256, payload);
}

std::string by_claim(const recorder& up, const std::string& invalid, const std::string& key, const std::string& rule)
{
    return running_gateway::in_front_of(
        const_cast<recorder&>(up).server(),
        "jwt:\n  login: { algorithms: [ HS256 ], secret: \"" + secret + "\", invalid: " + invalid +
            " }\nkeys:\n  user: " + key +
            "\nplans: { names: [ free, pro ], default: free, sources: [ { jwt_claim: plan } ] }\n"
            "chains:\n  api:\n    store: local\n    rules:\n      - { name: one, key: user, algorithm: fixed_window, "
            "align: first, limit: 1/hour, " +
            rule + " }\nroutes:\n  - { name: all, upstream: up, chains: [ api ] }\n");
}

unsigned ask(const running_gateway& gateway, const std::string& text) { return status_of(gateway.ask(text)); }

} // namespace

TEST_CASE("tokens: a claim is a key, another claim the plan; a bad token is 401 and has no counter")
{
    recorder up;
    running_gateway gateway(by_claim(up, "refuse", "[ { jwt_claim: sub }, client_ip ]", "plans: { pro: 2/hour }"));
    const auto ann = with_token(token_of(R"({"sub":"ann"})")),
               bob = with_token(token_of(R"({"sub":"bob","plan":"pro"})"));
    CHECK(ask(gateway, ann) == 200);
    CHECK(ask(gateway, ann) == 429);
    CHECK(ask(gateway, with_token(token_of(R"({"sub":"ann","jti":"another token"})"))) == 429);
    CHECK(ask(gateway, bob) == 200);
    CHECK(ask(gateway, bob) == 200);
    CHECK(ask(gateway, bob) == 429);
    const auto seen = up.requests().size();
    const auto none = encode_base64url(R"({"alg":"none"})") + "." + encode_base64url(R"({"sub":"eve"})") + ".";
    for (const auto& bad : {std::string("x"), none, token_of(R"({"sub":"eve"})", "another secret of thirty-two bytes!"),
                            token_of(R"({"sub":"eve","exp":1000000000})")}) {
        CAPTURE(bad);
        const auto answer = gateway.ask(with_token(bad));
        CHECK(status_of(answer) == 401);
        CHECK(field_of(answer, "WWW-Authenticate") == "Bearer error=\"invalid_token\"");
    }
    CHECK(ask(gateway, with_token(token_of(R"({"sub":"eve"})"), "Authorization: Bearer x\r\n")) == 401); // two tokens
    // Something else than the scheme's name, spaces and one token is no other scheme.
    for (const auto& value :
         {"Bearer\t" + token_of(R"({"sub":"eve"})"), "bearer\t" + token_of(R"({"sub":"eve"})"),
          "Bearer \t" + token_of(R"({"sub":"eve"})"), std::string("Bearer"), "Bearer=" + token_of(R"({"sub":"eve"})"),
          "Bearer" + token_of(R"({"sub":"eve"})"), "Bearer " + token_of(R"({"sub":"eve"})") + " x",
          "Bearer " + token_of(R"({"sub":"eve"})") + "\tx"}) {
        CAPTURE(value);
        CHECK(ask(gateway, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + value + "\r\n\r\n") == 401);
    }
    CHECK(up.requests().size() == seen);
    CHECK(ask(gateway, with_token("  " + token_of(R"({"sub":"ann"})") + "\t")) == 429); // white space that is allowed
    // No token, or another scheme: the next source is used.
    CHECK(ask(gateway, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YTpi\r\n\r\n") == 200);
    CHECK(ask(gateway, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") == 429);
    CHECK(ask(gateway, with_token(token_of(R"({"sub":["ann"]})"))) == 429); // no such claim: the address is used too
}

TEST_CASE("tokens: when a bad one counts as absent the next source is used, never its claims")
{
    recorder up;
    running_gateway gateway(by_claim(up, "absent", "[ { jwt_claim: sub }, client_ip ]", "count_refused: false"));
    CHECK(ask(gateway, with_token("x.y.z")) == 200);
    for (const char* user : {"a", "b", "c"}) {
        const auto forged =
            token_of(R"({"sub":")" + std::string(user) + "\"}", "not the secret that we know of, is it");
        CHECK(ask(gateway, with_token(forged)) == 429);
    }
    CHECK(ask(gateway, with_token(token_of(R"({"sub":"a"})"))) == 200);
}

TEST_CASE("overrides: a name in a header does not get the override of a verified name")
{
    recorder up;
    running_gateway gateway(
        by_claim(up, "refuse", "[ { jwt_claim: sub }, { header: X-User } ]", "overrides: { sub=ann: unlimited }"));
    for (int i = 0; i < 5; ++i)
        CHECK(ask(gateway, with_token(token_of(R"({"sub":"ann"})"))) == 200);
    const std::string claims_to_be_ann = "GET / HTTP/1.1\r\nHost: a\r\nX-User: ann\r\n\r\n";
    CHECK(ask(gateway, claims_to_be_ann) == 200);
    CHECK(ask(gateway, claims_to_be_ann) == 429);
}

TEST_CASE("overrides: nor does it as another part of a composite key")
{
    recorder up;
    auto yaml = by_claim(up, "refuse", "[ { jwt_claim: sub } ]\n  tenant: [ { header: X-Tenant } ]",
                         "overrides: { user=ann: unlimited }");
    yaml.replace(yaml.find("key: user,"), 10, "key: [ user, tenant ],");
    running_gateway gateway(yaml);
    const auto mallory = with_token(token_of(R"({"sub":"mallory"})"), "X-Tenant: ann\r\n");
    CHECK(ask(gateway, mallory) == 200);
    CHECK(ask(gateway, mallory) == 429);
}

TEST_CASE("tokens: 401 asks for a bearer token where the key takes one; the log says why a token was refused")
{
    recorder up;
    log_pipe pipe;
    const std::string log = "log: { access: { path: " + pipe.path() + " } }\n";
    const auto challenges = [](const std::string& answer) {
        std::vector<std::string> values;
        const std::string name = "WWW-Authenticate: ";
        for (auto at = answer.find(name); at != std::string::npos; at = answer.find(name, at + 1)) {
            const auto from = at + name.size();
            values.push_back(answer.substr(from, answer.find('\r', from) - from));
        }
        return values;
    };
    using list = std::vector<std::string>;
    const std::string get = "GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: guess\r\n\r\n";
    const auto code = [](const std::string& answer) {
        return nlohmann::json::parse(body_of(answer))["code"].get<std::string>();
    };
    const auto next = [&] { return nlohmann::json::parse(pipe.next_line()); };
    SUBCASE("a token")
    {
        running_gateway gateway(log +
                                by_claim(up, "refuse", "{ sources: [ { jwt_claim: sub } ], missing: refuse }", ""));
        const auto missing = gateway.ask(get);
        CHECK(status_of(missing) == 401);
        CHECK(code(missing) == "missing_key");
        CHECK(challenges(missing) == list{"Bearer"});
        CHECK_FALSE(next().contains("token"));
        const std::pair<std::string, std::string> bad[] = {
            {"x", "malformed"},
            {token_of(R"({"sub":"eve"})", "another secret of thirty-two bytes!"), "bad_signature"},
            {token_of(R"({"sub":"eve","exp":1000000000})"), "expired"},
            {token_of(R"({"sub":"eve","nbf":99999999999})"), "not_yet_valid"},
        };
        for (const auto& [token, why] : bad) {
            CAPTURE(why);
            const auto refused = gateway.ask(with_token(token));
            CHECK(challenges(refused) == list{"Bearer error=\"invalid_token\""});
            const auto line = next();
            CHECK(line["error"] == "bad_token");
            CHECK(line["token"] == why);
        }
        gateway.ask(with_token(token_of(R"({"sub":"eve"})"), "Authorization: Bearer x\r\n"));
        CHECK(next()["token"] == "repeated");
        CHECK(status_of(gateway.ask(with_token(token_of(R"({"sub":"ann"})")))) == 200);
        CHECK_FALSE(next().contains("token"));
    }
    SUBCASE("a refused token that counts as absent is not called missing")
    {
        running_gateway gateway(log +
                                by_claim(up, "absent", "{ sources: [ { jwt_claim: sub } ], missing: refuse }", ""));
        const auto refused = gateway.ask(with_token(token_of(R"({"sub":"eve","exp":1000000000})")));
        CHECK(status_of(refused) == 401);
        CHECK(code(refused) == "bad_token");
        CHECK(challenges(refused) == list{"Bearer error=\"invalid_token\""});
        CHECK(next()["token"] == "expired");
    }
    SUBCASE("where the next source is used, the log still says it")
    {
        running_gateway gateway(log + by_claim(up, "absent", "[ { jwt_claim: sub }, client_ip ]", ""));
        CHECK(ask(gateway, with_token("x.y.z")) == 200);
        CHECK(next()["token"] == "malformed");
    }
    SUBCASE("a token or an API key: both are named")
    {
        running_gateway gateway(
            log +
            by_claim(up, "refuse", "{ sources: [ { jwt_claim: sub }, { header: X-Other } ], missing: refuse }", ""));
        CHECK(challenges(gateway.ask(get)) == list{"ApiKey", "Bearer"});
    }
}
