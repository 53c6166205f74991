// A Redis whose clock was ahead: after a correction, or on the next server after a failover.
#include "tests/redis/redis_under_test.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;

namespace {

const auto noon = start + 5h;
constexpr auto ahead = 24h * 10;

rule calendar_day(std::uint64_t n)
{
    auto r = named("day", fixed_window(n, 24h));
    r.calendar = calendar_unit::day;
    return r;
}

struct limited
{
    const char* group;
    rule limit;
    microseconds wait; // after three requests at noon + ahead, and a clock that then shows noon
};
const std::vector<limited> all{{"bucket", named("r", token_bucket(1, 10s, 3)), 10s},
                               {"clock", named("r", fixed_window(3, 1h)), 1h},
                               {"first", named("r", fixed_window(3, 90s, window_align::first)), 90s},
                               {"day", calendar_day(3), 19h - 7h},
                               {"sliding", named("r", sliding_window(3, 60s)), 60s + 20s},
                               {"log", named("r", sliding_log(3, 60s)), 60s}};

} // namespace

TEST_CASE("redis clock: a key from ten days ahead is refused as long as the rule needs, then admitted")
{
    redis_under_test s;
    for (const auto& each : all) {
        CAPTURE(std::string(each.group));
        s.define(each.group, {each.limit}, noon);
        const chain k{{each.group, "k", {}}};
        CHECK(s.takes(5, k, noon + ahead) == 3);
        CHECK(s.look(k, noon).retry_after == each.wait);
        const auto refused = s.take(k, noon);
        CHECK_FALSE(refused.admitted);
        CHECK(refused.retry_after == each.wait);
        CHECK(refused.charged_at == noon);
        // Refusals in between do not make it longer.
        CHECK_FALSE(s.take(k, noon + each.wait - 1us).admitted);
        CHECK(s.take(k, noon + each.wait).admitted);
    }
    CHECK(s.key_for_ever() == "");
}

TEST_CASE("redis clock: chains, corrections and verbs find the state as if it had been written now")
{
    redis_under_test s;
    const std::vector<rule> rules{
        named("b", token_bucket(1, 10s, 6)),  named("c", fixed_window(100, 1h)), calendar_day(100),
        named("s", sliding_window(100, 60s)), named("l", sliding_log(100, 60s)), named("f", concurrency(100))};
    s.define("all", rules, noon);
    s.define("other", {named("b", token_bucket(1, 10s, 6))}, noon);
    const chain k{{"all", "k", {2, 2, 2, 2, 2, 2}}, {"other", "k", {1}}};
    const auto taken = s.take(k, noon + ahead);
    CHECK(taken.admitted);

    // The first charge after the step is in the past of the one before.
    CHECK(s.take(k, noon + 5s).admitted);
    auto report = s.inspect("all", "k", noon + 5s);
    REQUIRE(report);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        CAPTURE(rules[i].name);
        CHECK(report->decisions[i].remaining == rules[i].limit() - 4);
    }
    // Settled to more: the debt of a charge made before the step stays owed.
    CHECK(s.take({{"other", "d", {6}}}, noon + ahead).admitted);
    s.correct({"other", "d", {6}}, {10}, noon + ahead, noon);
    CHECK(s.look({{"other", "d", {1}}}, noon).retry_after == 50s);
    // Given back, in the window that now runs.
    CHECK(s.take({{"all", "g", {3, 3, 3, 3, 3, 3}}}, noon + ahead).admitted);
    s.give_back({{"all", "g", {3, 3, 3, 3, 3, 3}}}, noon + ahead, noon);
    report = s.inspect("all", "g", noon);
    REQUIRE(report);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        CAPTURE(rules[i].name);
        CHECK(report->decisions[i].remaining == rules[i].limit());
    }
    // A block lasts as long as it was meant to.
    s.block("other", "x", noon + ahead + 60s, noon + ahead);
    CHECK(s.take({{"other", "x", {1}}}, noon).retry_after == 60s);
    CHECK_FALSE(s.take({{"other", "x", {1}}}, noon + 60s).blocked);
    // Other rules: what was used is converted as if it had been written now.
    CHECK(s.take({{"other", "y", {6}}}, noon + ahead).admitted);
    s.define("other", {named("b", token_bucket(1, 10s, 7))}, noon);
    CHECK(s.look({{"other", "y", {0}}}, noon).decisions[0].remaining == 1);
    CHECK(s.take({{"other", "y", {2}}}, noon).retry_after == 10s);
}
