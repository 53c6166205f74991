// Corrected charges and operators' verbs, as every store must handle them.
#include "tests/contract/limiter_under_test.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

const auto noon = start + 5h;
std::uint64_t left(limiter_under_test& s, const std::string& group, const std::string& key, time_point now)
{
    const auto got = s.inspect(group, key, now);
    return got ? got->decisions.at(0).remaining : UINT64_MAX;
}

} // namespace

TEST_CASE("contract: reset fills a bucket of 5: 5 of 8 requests pass")
{
    on_every_store([](limiter_under_test& s) {
        s.define("list", {named("list", token_bucket(1, 720h, 5))}, noon);
        const chain k{{"list", "k"}};
        CHECK(s.takes(8, k, noon) == 5);
        CHECK(s.reset("list", "k", noon));
        CHECK(s.takes(8, k, noon) == 5);
    });
}

TEST_CASE("contract: a grant of 10 to a bucket of 5 adds and returns 5")
{
    on_every_store([](limiter_under_test& s) {
        s.define("list", {named("list", token_bucket(1, 720h, 5))}, noon);
        const chain k{{"list", "k"}};
        CHECK(s.takes(8, k, noon) == 5);
        CHECK(s.grant("list", "k", 10, noon) == 5);
        CHECK(s.takes(6, k, noon) == 5);
        CHECK(s.grant("list", "k", 2, noon) == 2);
        CHECK(s.takes(6, k, noon) == 2);
        CHECK(s.grant("list", "missing", 2, noon) == 0);
        CHECK(s.grant("nothing", "k", 2, noon) == 0);
    });
}

TEST_CASE("contract: a grant makes room under every algorithm, also in the previous window")
{
    on_every_store([](limiter_under_test& s) {
        const std::pair<std::string, rule> rules[] = {{"token", token_bucket(1, 720h, 10)},
                                                      {"fixed", fixed_window(10, 60s)},
                                                      {"sliding", sliding_window(10, 60s)},
                                                      {"log", sliding_log(10, 60s)}};
        for (const auto& [name, r] : rules) {
            CAPTURE(name);
            s.define(name, {named(name, r)}, noon);
            CHECK(s.takes(20, {{name, "k"}}, noon) == 10);
            CHECK(s.grant(name, "k", 3, noon) == 3);
            CHECK(s.takes(20, {{name, "k"}}, noon) == 3);
        }
        // Halfway through the next window five of the ten still count.
        const auto later = noon + 90s;
        CHECK(left(s, "sliding", "k", later) == 5);
        CHECK(s.grant("sliding", "k", 3, later) == 3);
        CHECK(left(s, "sliding", "k", later) == 8);
        CHECK(s.grant("sliding", "k", 30, later) == 2);
        CHECK(left(s, "sliding", "k", later) == 10);
    });
}

TEST_CASE("contract: a charge is corrected to less, to more, to the same, or to nothing")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("bytes", token_bucket(1, 1s, 100))}, noon);
        const chain k{{"a", "k", {40}}};
        reservation id = 0;
        CHECK(s.reserve(k, noon, id).admitted);
        CHECK(id != 0);
        CHECK(left(s, "a", "k", noon) == 60);
        CHECK(s.settle(id, {10}, noon));
        CHECK(left(s, "a", "k", noon) == 90);
        CHECK_FALSE(s.settle(id, {10}, noon)); // a charge is corrected only once
        CHECK(left(s, "a", "k", noon) == 90);

        CHECK(s.reserve(k, noon, id).admitted);
        CHECK(s.settle(id, {60}, noon));
        CHECK(left(s, "a", "k", noon) == 30);

        CHECK_FALSE(s.reserve(k, noon, id).admitted);
        CHECK(id == 0);
        CHECK_FALSE(s.settle(0, {1}, noon));

        CHECK(s.reserve({{"a", "k", {30}}}, noon, id).admitted);
        CHECK(s.settle(id, {30}, noon));
        CHECK(left(s, "a", "k", noon) == 0);
        CHECK(s.reserve(k, noon + 50s, id).admitted);
        CHECK(s.settle(id, {}, noon + 50s));
        CHECK(left(s, "a", "k", noon + 50s) == 50);
    });
}

TEST_CASE("contract: a corrected cost may exceed the limit, and is paid off")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("bytes", token_bucket(1, 1s, 10))}, noon);
        reservation id = 0;
        CHECK(s.reserve({{"a", "k", {5}}}, noon, id).admitted);
        CHECK(s.settle(id, {25}, noon));
        CHECK(s.take({{"a", "k"}}, noon).retry_after == 16s);
        for (int i = 0; i < 3000; ++i) { // no series of huge costs overflows
            CHECK(s.reserve({{"a", "k", {0}}}, noon + 1h, id).admitted == (i == 0));
            s.settle(id, {UINT64_MAX}, noon + 1h);
        }
    });
}

TEST_CASE("contract: a charge over two keys is corrected on both, each with its own costs")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h)), named("bytes", fixed_window(100, 24h))}, noon);
        s.define("b", {named("all", fixed_window(1000, 24h))}, noon);
        reservation id = 0;
        CHECK(s.reserve({{"a", "k", {1, 50}}, {"b", "x", {50}}}, noon, id).admitted);
        CHECK(s.settle(id, {1, 20, 70}, noon + 1s));
        const auto a = s.inspect("a", "k", noon + 1s);
        CHECK(a->decisions.at(0).remaining == 9);
        CHECK(a->decisions.at(1).remaining == 80);
        CHECK(left(s, "b", "x", noon + 1s) == 930);
    });
}

TEST_CASE("contract: a charge given back after a reload goes to the new rule's counter")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(100, 24h))}, noon);
        const chain k{{"a", "k", {30}}};
        const auto got = s.take(k, noon);
        s.define("a", {named("calls", fixed_window(50, 24h))}, noon + 1s);
        CHECK(left(s, "a", "k", noon + 1s) == 20);
        s.give_back(k, got.charged_at, noon + 2s);
        CHECK(left(s, "a", "k", noon + 2s) == 50);
    });
}

TEST_CASE("contract: a request in flight gives back no token when its rule has become a rate")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("r", concurrency(10))}, noon);
        const chain k{{"a", "k"}};
        const auto got = s.take(k, noon);
        reservation id = 0;
        s.reserve(k, noon, id);
        s.define("a", {named("r", fixed_window(10, 24h))}, noon);
        CHECK(s.takes(9, k, noon) == 9);
        s.settle(id, {}, noon);
        CHECK(left(s, "a", "k", noon) == 1);
    });
}

TEST_CASE("contract: a blocked key is refused until the block ends, charges nothing, and can be unblocked")
{
    on_every_store([](limiter_under_test& s) {
        auto calls = named("calls", fixed_window(10, 24h));
        calls.count_refused = true; // refusals by a rule are charged, refusals by a block are not
        s.define("a", {calls}, noon);
        const chain k{{"a", "k"}};
        CHECK(s.take(k, noon).admitted);
        CHECK(s.block("a", "k", noon + 60s, noon));
        const auto refused = s.take(k, noon + 20s);
        CHECK_FALSE(refused.admitted);
        CHECK(refused.blocked);
        CHECK(refused.retry_after == 40s);
        CHECK(s.inspect("a", "k", noon + 20s)->blocked_for == 40s);
        CHECK(left(s, "a", "k", noon + 20s) == 9);
        CHECK_FALSE(s.take(k, noon + 60s - 1us).admitted);
        CHECK(s.take(k, noon + 60s).admitted);
        CHECK_FALSE(s.inspect("a", "k", noon + 60s)->blocked_for);

        CHECK(s.block("a", "stranger", noon + 600s, noon + 61s)); // a new key
        CHECK_FALSE(s.take({{"a", "stranger"}}, noon + 62s).admitted);
        CHECK(s.unblock("a", "stranger", noon + 63s));
        CHECK_FALSE(s.unblock("a", "stranger", noon + 63s));
        CHECK(s.take({{"a", "stranger"}}, noon + 63s).admitted);
        CHECK_FALSE(s.block("nothing", "k", noon + 600s, noon));
    });
}

TEST_CASE("contract: a chain of which keys are blocked names the first of them, and charges none of its keys")
{
    on_every_store([](limiter_under_test& s) {
        for (const char* group : {"a", "b", "c"})
            s.define(group, {named("calls", fixed_window(10, 24h))}, noon);
        const chain three{{"a", "k"}, {"b", "k"}, {"c", "k"}};
        CHECK(s.take(three, noon).admitted);
        CHECK(s.block("c", "k", noon + 60s, noon));
        const auto one = s.take(three, noon);
        CHECK(one.blocked);
        CHECK(one.blocked_part == 2);
        CHECK(s.block("b", "k", noon + 90s, noon));
        const auto two = s.take(three, noon);
        CHECK(two.blocked_part == 1);
        CHECK(two.retry_after == 90s);
        CHECK(left(s, "a", "k", noon) == 9);
    });
}

TEST_CASE("contract: list returns keys by prefix, in order, and of one group only")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h))}, noon);
        s.define("b", {named("calls", fixed_window(10, 24h))}, noon);
        for (const char* key : {"user:2", "user:1", "ip:1"})
            s.take({{"a", key}}, noon);
        s.take({{"b", "user:3"}}, noon);
        const auto users = s.list("a", "user:", noon);
        REQUIRE(users.size() == 2);
        CHECK(users[0].key == "user:1");
        CHECK(users[1].key == "user:2");
        CHECK(s.list("a", "", noon).size() == 3);
        CHECK(s.list("c", "", noon).empty());
        CHECK_FALSE(s.inspect("a", "user:3", noon));
        CHECK_FALSE(s.reset("a", "user:3", noon));
    });
}

TEST_CASE("contract: a reset clears the rates of a key, not its requests in flight")
{
    on_every_store([](limiter_under_test& s) {
        s.define("a", {named("calls", fixed_window(10, 24h)), named("open", concurrency(5))}, noon);
        s.takes(3, {{"a", "k"}}, noon);
        CHECK(s.reset("a", "k", noon));
        const auto after = s.inspect("a", "k", noon);
        CHECK(after->decisions.at(0).remaining == 10);
        CHECK(after->decisions.at(1).remaining == 2);
        CHECK(s.grant("a", "k", 5, noon) == 0);
    });
}
