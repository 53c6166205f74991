// The guard against invented identities, over a running gateway (decision 12).
#include "gateway/stores/identity_guard.hpp"
#include "tests/admin/support.hpp"
#include "tests/gateway/support.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <openssl/sha.h>

#include <fstream>
#include <thread>

using namespace headgate;
using namespace headgate::tests;
using namespace std::chrono_literals;

namespace {

struct guarded
{
    std::string guard = "3/hour";
    std::string sources = "{ header: X-API-Key }, client_ip";
    std::string limit = "1000/minute";
    std::string more;       // keys of the rule
    std::string more_rules; // of the chain
    std::string log = "off";
    unsigned workers = 1;

    std::string text() const
    {
        return "workers: " + std::to_string(workers) +
               "\nlisteners: [ { address: 127.0.0.1:0 } ]\nadmin: { address: 127.0.0.1:0 }\nlog: { access: { path: " +
               log +
               " } }\ntrusted_proxies: [ 127.0.0.1 ]\n"
               "stores: { local: { type: memory, max_keys: 1000 } }\nkeys:\n  user: { sources: [ " +
               sources + " ]" + (guard.empty() ? "" : ", new_identities: " + guard) +
               " }\nchains:\n  api:\n    store: local\n    rules:\n      - { name: minute, key: user, algorithm: "
               "fixed_window, "
               "limit: " +
               limit + more + " }\n" + more_rules +
               "upstreams: { up: { echo: true } }\nroutes:\n  - { name: all, chains: [ api ], upstream: up }\n";
    }
};

// The answer to a request with this identity, from this address.
std::string ask_as(const running_gateway& gateway, const std::string& identity,
                   const std::string& address = "192.0.2.1", const std::string& more = "")
{
    return gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: " + identity + "\r\nX-Forwarded-For: " + address +
                       "\r\n" + more + "\r\n");
}

unsigned status_as(const running_gateway& gateway, const std::string& identity,
                   const std::string& address = "192.0.2.1")
{
    return status_of(ask_as(gateway, identity, address));
}

std::string sha256_of(const std::string& text)
{
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    std::string hex;
    for (const unsigned byte : digest) {
        hex += "0123456789abcdef"[byte >> 4U];
        hex += "0123456789abcdef"[byte & 15U];
    }
    return hex;
}

void end_grace(running_gateway& gateway) { gateway.app().clock().advance(1h); }

} // namespace

TEST_CASE("new identities: a client that makes up another one for each request is limited, and others are not")
{
    running_gateway gateway(guarded().text());
    end_grace(gateway);
    for (int i = 0; i < 3; ++i)
        CHECK(status_as(gateway, "made-up-" + std::to_string(i)) == 200);
    const auto keys = metric(gateway, "headgate_store_keys{store=\"local\"}");
    CHECK(keys == 3);
    for (int i = 3; i < 50; ++i)
        REQUIRE(status_as(gateway, "made-up-" + std::to_string(i)) == 429);
    CHECK(metric(gateway, "headgate_store_keys{store=\"local\"}") == keys); // a refusal creates nothing
    for (int i = 0; i < 3; ++i)
        CHECK(status_as(gateway, "made-up-" + std::to_string(i)) == 200); // known by now
    CHECK(status_as(gateway, "made-up-50", "192.0.2.2") == 200);
    CHECK(status_as(gateway, "made-up-50", "192.0.2.1") == 200); // wherever it comes from

    const auto refused = ask_as(gateway, "made-up-51");
    CHECK(status_of(refused) == 429);
    const auto wait = std::stoul(field_of(refused, "Retry-After"));
    CHECK(wait > 1100);
    CHECK(wait <= 1200);
    gateway.app().clock().advance(1200s);
    CHECK(status_as(gateway, "made-up-51") == 200);
    CHECK(status_as(gateway, "made-up-52") == 429);
}

TEST_CASE("new identities: the guard is named in the answer, the explanation, the log and the metrics")
{
    log_pipe log;
    guarded file{.guard = "1/hour", .log = log.path()};
    running_gateway gateway(file.text() + "answers: { explain_networks: [ 192.0.2.0/24 ] }\n");
    end_grace(gateway);
    const auto passed = ask_as(gateway, "a", "192.0.2.1", "X-RateLimit-Explain: 1\r\n");
    CHECK(field_of(passed, "RateLimit-Policy") == "\"user.new_identities\";q=1;w=3600, \"minute\";q=1000;w=60");
    CHECK(
        field_of(passed, "X-RateLimit-Explain").starts_with("rule=\"user.new_identities\"; chain=\"new_identities\";"));
    CHECK(nlohmann::json::parse(log.next_line())["status"] == 200);
    const auto refused = ask_as(gateway, "b");
    CHECK(status_of(refused) == 429);
    CHECK(field_of(refused, "RateLimit").find("\"user.new_identities\";r=0;t=3600") == 0);
    CHECK(body_of(refused).find("\"violated-policies\":[\"user.new_identities\"]") != std::string::npos);
    const auto line = nlohmann::json::parse(log.next_line());
    CHECK(line["limit"] == "refused");
    CHECK(line["rule"] == "user.new_identities");
    CHECK(line["identity"] == "client_ip/client_ip=192.0.2.1");
    CHECK(metric_at_last(gateway, "headgate_limited_total{route=\"all\",rule=\"user.new_identities\"}", 1) == 1);
    CHECK(metric(gateway, "headgate_store_keys{store=\"user.new_identities\"}") == 1);
    CHECK(metric(gateway, "headgate_forgotten_identities_total{key=\"user\"}") == 0);
    const auto known = ask_as(gateway, "a");
    CHECK(field_of(known, "RateLimit-Policy") == "\"minute\";q=1000;w=60");
}

TEST_CASE("new identities: for one period after a start none is new, and what comes then is remembered")
{
    running_gateway gateway(guarded().text());
    for (int i = 0; i < 20; ++i)
        CHECK(status_as(gateway, "early-" + std::to_string(i)) == 200);
    gateway.app().clock().advance(59min);
    CHECK(status_as(gateway, "early-0") == 200);
    gateway.app().clock().advance(59min);
    CHECK(status_as(gateway, "early-0") == 200); // seen 59 minutes ago
    for (int i = 1; i < 4; ++i)
        CHECK(status_as(gateway, "early-" + std::to_string(i)) == 200); // not seen for two hours: new again
    CHECK(status_as(gateway, "early-4") == 429);
}

TEST_CASE("new identities: addresses are charged by prefix")
{
    running_gateway gateway(guarded{.guard = "{ limit: 1/hour, ipv4_prefix: 24, ipv6_prefix: 56 }"}.text());
    end_grace(gateway);
    CHECK(status_as(gateway, "a", "192.0.2.1") == 200);
    CHECK(status_as(gateway, "b", "192.0.2.250") == 429);
    CHECK(status_as(gateway, "b", "192.0.3.1") == 200);
    CHECK(status_as(gateway, "c", "2001:db8::1") == 200);
    CHECK(status_as(gateway, "d", "2001:db8:0:ff::2") == 429);
    CHECK(status_as(gateway, "d", "2001:db8:0:100::2") == 200);
}

TEST_CASE("new identities: addresses themselves, the anonymous and identities that the configuration names never count")
{
    const guarded file{.guard = "1/hour", .more = ", overrides: { X-API-Key=vip: 5000/minute }"};
    running_gateway gateway(file.text() +
                            "plans: { names: [ free, pro ], default: free, overrides: { X-API-Key=partner: pro "
                            "} }\n");
    end_grace(gateway);
    CHECK(status_as(gateway, "first") == 200);
    CHECK(status_as(gateway, "second") == 429);
    CHECK(status_as(gateway, "vip") == 200);
    CHECK(status_as(gateway, "partner") == 200);
    for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.1"})
        CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + std::string(address) +
                                    "\r\n\r\n")) == 200);
    guarded anonymous{.guard = "1/hour", .sources = "{ header: X-API-Key }"};
    running_gateway other(anonymous.text());
    end_grace(other);
    for (int i = 0; i < 3; ++i)
        CHECK(status_of(other.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
    // A key that is malformed is that, and charges nothing.
    CHECK(status_of(other.ask("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: a\r\nX-API-Key: b\r\n\r\n")) == 400);
    CHECK(status_as(other, "first", "127.0.0.1") == 200);
}

TEST_CASE("new identities: a request that a later chain refuses charges nothing and is not remembered")
{
    guarded file{.guard = "2/hour",
                 .more_rules =
                     "      - { name: all, key: route, algorithm: fixed_window, align: first, limit: 1/minute }\n"};
    running_gateway gateway(file.text());
    end_grace(gateway);
    CHECK(status_as(gateway, "a") == 200);
    for (int i = 0; i < 5; ++i) {
        const auto refused = ask_as(gateway, "b" + std::to_string(i));
        CHECK(status_of(refused) == 429);
        CHECK(body_of(refused).find("\"violated-policies\":[\"all\"]") != std::string::npos);
        CHECK(field_of(refused, "RateLimit").starts_with("\"user.new_identities\";r=1;"));
    }
    gateway.app().clock().advance(60s);
    CHECK(field_of(ask_as(gateway, "b0"), "RateLimit").starts_with("\"user.new_identities\";r=0;")); // is new still
    gateway.app().clock().advance(60s);
    CHECK(body_of(ask_as(gateway, "b1")).find("\"violated-policies\":[\"user.new_identities\"]") != std::string::npos);
}

TEST_CASE("new identities: verified ones never count")
{
    const std::string secret = "a secret of thirty-two bytes or more";
    const auto token_of = [&](const std::string& user) {
        return identity::testing::make_token(identity::testing::signing_key::secret(secret),
                                             config::jwt_algorithm::HS256, "{\"sub\":\"" + user + "\"}");
    };
    const temporary_folder folder;
    // printf %s KEY | sha256sum
    std::ofstream(folder.file("keys")) << sha256_of("key-1") << " one free\n" << sha256_of("key-2") << " two free\n";
    const guarded file{
        .guard = "1/hour",
        .sources = "{ jwt_claim: sub }, { api_key: { header: X-Verified, table: known } }, { header: X-API-Key }"};
    running_gateway gateway(file.text() + "jwt: { login: { algorithms: [ HS256 ], secret: \"" + secret +
                            "\" } }\napi_keys: { known: { file: " + folder.file("keys") +
                            " } }\nplans: { names: [ free ], default: free }\n");
    end_grace(gateway);
    CHECK(status_as(gateway, "first") == 200);
    CHECK(status_as(gateway, "second") == 429);
    for (const char* user : {"ann", "bob", "eve"})
        CHECK(status_of(ask_as(gateway, "third", "192.0.2.1", "Authorization: Bearer " + token_of(user) + "\r\n")) ==
              200);
    for (const char* key : {"key-1", "key-2"})
        CHECK(status_of(ask_as(gateway, "third", "192.0.2.1", "X-Verified: " + std::string(key) + "\r\n")) == 200);
    CHECK(status_of(ask_as(gateway, "third", "192.0.2.1", "X-Verified: made-up\r\n")) == 429);
}

TEST_CASE("new identities: many workers charge one address exactly, also for identities that come at once")
{
    running_gateway gateway(guarded{.guard = "50/hour", .workers = 4}.text());
    end_grace(gateway);
    std::atomic<int> passed{0};
    {
        std::vector<std::jthread> clients;
        for (int t = 0; t < 8; ++t) {
            clients.emplace_back([&] {
                auto client = gateway.connect();
                for (int i = 0; i < 200; ++i) { // every identity comes from all of them
                    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: k" + std::to_string(i) + "\r\n\r\n");
                    const auto status = status_of(client.read_response());
                    if (status == 200)
                        ++passed;
                }
            });
        }
    }
    std::size_t known = 0;
    for (int i = 0; i < 200; ++i)
        known += status_as(gateway, "k" + std::to_string(i), "127.0.0.1") == 200;
    CHECK(known == 50);
    CHECK(passed >= 50);
    CHECK(passed <= 50 * 8);
}

TEST_CASE("new identities: a reload keeps what was seen and charged; a guard that is new begins with its grace")
{
    guarded file;
    file.limit = "1001/minute";
    running_gateway gateway(file.text());
    end_grace(gateway);
    for (int i = 0; i < 3; ++i)
        CHECK(status_as(gateway, "k" + std::to_string(i)) == 200);
    file.guard = "4/hour";
    gateway.reload(file.text());
    const auto adopted = [&](const std::string& limit) {
        return eventually([&] {
            return field_of(ask_as(gateway, "k0"), "RateLimit-Policy").find("q=" + limit) != std::string::npos;
        });
    };
    file.limit = "1002/minute";
    gateway.reload(file.text());
    CHECK(adopted("1002"));
    CHECK(status_as(gateway, "k1") == 200);
    CHECK(status_as(gateway, "k3") == 200); // one more than before
    CHECK(status_as(gateway, "k4") == 429);
    file.guard = "";
    file.limit = "1003/minute";
    gateway.reload(file.text());
    CHECK(adopted("1003"));
    CHECK(status_as(gateway, "k4") == 200);
    file.guard = "1/hour";
    file.limit = "1004/minute";
    gateway.reload(file.text());
    CHECK(adopted("1004"));
    for (int i = 5; i < 10; ++i)
        CHECK(status_as(gateway, "k" + std::to_string(i)) == 200);
    end_grace(gateway);
    CHECK(status_as(gateway, "x1") == 200);
    CHECK(status_as(gateway, "x2") == 429);
}

TEST_CASE("new identities: a client that leaves while its request is delayed has used its identity")
{
    guarded file{.guard = "1/hour"};
    file.more_rules =
        "      - { name: shaped, key: route, algorithm: leaky_bucket, limit: 1/minute, burst: 10, delay: all }\n";
    running_gateway gateway(file.text());
    end_grace(gateway);
    CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
    {
        auto leaving = gateway.connect();
        leaving.send("GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: first\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
        CHECK(metric_at_last(gateway, "headgate_store_keys{store=\"user.new_identities\"}", 1) == 1);
    }
    CHECK(metric_at_last(gateway, "headgate_requests_total{route=\"all\",class=\"none\"}", 1) == 1);
    CHECK(status_as(gateway, "second") == 429);
}

TEST_CASE(
    "identity guard: as many as configured are remembered, and the one that was seen the longest ago is forgotten")
{
    config::new_identities_config configured{.max_identities = 1000};
    configured.rule.period = 1h;
    limiter::time_point now{24h * 365 * 50};
    identity_guard guard(configured, now);
    CHECK(guard.is_in_grace(now + 1h - 1us));
    CHECK(!guard.is_in_grace(now + 1h));
    for (int i = 0; i < 1000; ++i)
        CHECK(!guard.remember(guard.hash_of("k" + std::to_string(i)), now += 1us));
    CHECK(guard.forgotten() == 0);
    for (int i = 0; i < 10'000; ++i)
        guard.remember(guard.hash_of("flood" + std::to_string(i)), now += 1us);
    CHECK(guard.forgotten() > 0);
    CHECK(!guard.is_seen(guard.hash_of("k0"), now));
    CHECK(guard.is_seen(guard.hash_of("flood9999"), now));
}
