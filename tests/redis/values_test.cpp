// A key's value: its bytes, its rules' fingerprint, and its changes outside of requests.
#include "limiter/redis/fingerprint.hpp"
#include "limiter/redis/key_value.hpp"
#include "tests/support/rules.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

using namespace headgate::testing;
namespace redis = headgate::limiter::redis;

namespace {

const auto noon = start + 5h;

const std::vector<rule> all_kinds{named("t", token_bucket(7, 1s, 10)), named("f", fixed_window(5, 60s)),
                                  named("s", sliding_window(5, 60s)), named("l", sliding_log(5, 60s)),
                                  named("c", concurrency(5))};

redis::key_value used_value(const redis::packed_group& group)
{
    auto value = redis::fresh_value(group, noon);
    value.blocked_until = noon + 3s;
    for (std::size_t i = 0; i < group.size(); ++i) {
        for (const auto at : {noon, noon + 1us, noon + 5us}) {
            if (group.kind(i) != redis::script_kind::in_flight)
                charge(group.limits(i), value.rules[i].words, at, 1);
        }
        if (group.kind(i) == redis::script_kind::in_flight) {
            value.rules[i].holders = {{7, 2, noon + 60s}, {9, 1, noon + 30s}};
            value.rules[i].words[0] = 3;
        }
    }
    return value;
}

std::uint64_t fingerprint(const rule& r) { return redis::fingerprint_of(redis::describe_rules(std::span(&r, 1))); }

} // namespace

TEST_CASE("redis values: every kind of state is read as it was written")
{
    const redis::detached_rules rules(all_kinds);
    const auto& group = rules.packed();
    const auto value = used_value(group);
    const auto bytes = encode(group, value);
    CHECK(bytes.size() == 7 * (3 + 2 + 2 + 3 + 2 + 1) + 3 * 14 + 2 * 21);
    CHECK(redis::fingerprint_in(bytes) == group.fingerprint());
    const auto back = redis::decode(group, bytes);
    REQUIRE(back);
    CHECK(*back == value);
    CHECK(encode(group, *back) == bytes);
}

TEST_CASE("redis values: cut, longer, altered or foreign bytes are refused, not misread")
{
    const redis::detached_rules rules(all_kinds);
    const auto& group = rules.packed();
    const auto bytes = encode(group, used_value(group));
    for (std::size_t n = 0; n < bytes.size(); ++n)
        CHECK_FALSE(redis::decode(group, bytes.substr(0, n)));
    CHECK_FALSE(redis::decode(group, bytes + std::string(7, '\0')));
    CHECK_FALSE(redis::decode(group, bytes + "x"));
    CHECK_FALSE(redis::fingerprint_in("x"));
    CHECK_FALSE(redis::fingerprint_in(std::string(21, '\0')));
    CHECK_FALSE(redis::fingerprint_in(std::string(21, '\xff')));
    // Changes each byte: the result is a value or nothing, never a crash; and a value that is read is written
    // identically.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const char to : {'\x00', '\x01', '\x7f', '\xff'}) {
            auto altered = bytes;
            altered[i] = to;
            if (const auto read = redis::decode(group, altered))
                CHECK(encode(group, *read) == altered);
        }
    }
}

TEST_CASE("redis values: a conversion keeps the used amounts, and requests in flight with their holders")
{
    const redis::detached_rules from(all_kinds);
    const redis::detached_rules to(
        {named("c", concurrency(9)), named("f", fixed_window(10, 60s)), named("new", token_bucket(1, 1s, 4))});
    auto old = used_value(from.packed());
    const auto value = convert_value(from.packed(), old, to.packed(), noon + 5us, carry::up_to_limit);
    CHECK(value.blocked_until == old.blocked_until);
    CHECK(value.rules[0].holders == old.rules[4].holders);
    const auto result = decisions_of(to.packed(), value, noon + 5us);
    CHECK(result[0].remaining == 6);
    CHECK(result[1].remaining == 7);
    CHECK(result[2].remaining == 4);
    auto later = value;
    advance(to.packed(), later, noon + 30s);
    CHECK(later.last == noon + 30s);
    CHECK(decisions_of(to.packed(), later, noon + 30s)[0].remaining == 7); // one holder has expired
    const auto before = decisions_of(to.packed(), later, noon + 30s);
    advance(to.packed(), later, noon); // from the future: as if it had been written now
    CHECK(later.last == noon);
    CHECK(decisions_of(to.packed(), later, noon)[0] == before[0]);
    CHECK(decisions_of(to.packed(), later, noon)[2] == before[2]);
}

TEST_CASE("redis values: they live until they have recovered, and a little longer, with a maximum")
{
    using std::chrono::milliseconds;
    const redis::detached_rules rules({named("t", token_bucket(1, 1s, 10))});
    auto value = redis::fresh_value(rules.packed(), noon);
    CHECK(time_to_live(rules.packed(), value, noon) == milliseconds{10'001});
    charge(rules.packed().limits(0), value.rules[0].words, noon, 5);
    CHECK(time_to_live(rules.packed(), value, noon) == milliseconds{15'001});
    value.blocked_until = time_point::max();
    CHECK(time_to_live(rules.packed(), value, noon) == milliseconds{315'360'000'000});
}

TEST_CASE("redis fingerprints: every parameter changes the fingerprint")
{
    auto base = named("r", token_bucket(60, 60s, 60));
    std::vector<rule> others(12, base);
    others[0].name = "s";
    others[1].kind = algorithm::gcra;
    others[2].count = 61;
    others[3].period += 1us;
    others[4].capacity = 61;
    others[5].initial = 59;
    others[6].delay_after = 0;
    others[7].align = window_align::first;
    others[8].calendar = calendar_unit::day;
    others[9].shadow = true;
    others[10].unlimited = true;
    others[11].count_refused = true;
    std::vector<std::uint64_t> all{fingerprint(base)};
    for (const auto& r : others)
        all.push_back(fingerprint(r));
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(all.front() > 0);
    CHECK(all.back() < std::uint64_t{1} << 53);
    CHECK(fingerprint(base) == fingerprint(named("r", token_bucket(60, 60s, 60))));
    // It must be the same on every gateway and in every version, because it is stored in Redis.
    CHECK(redis::describe_rules(std::span(&base, 1)) == "0 60 60000000 60 60 - 1 0 - 0 r\n");
}

TEST_CASE("redis fingerprints: rules are parsed from their description, and other texts are refused")
{
    const bool holds = rc::check("described and parsed", [] {
        std::vector<rule> rules;
        for (int n = in_range(1, 17), i = 0; i < n; ++i) {
            auto r = any_rule(*rc::gen::elementOf(std::vector(std::begin(every_algorithm), std::end(every_algorithm))));
            r.name = *rc::gen::string<std::string>();
            r.shadow = in_range(0, 2) == 1;
            if (in_range(0, 2) == 1)
                r.delay_after = in_range<std::uint64_t>(0, 9);
            rules.push_back(std::move(r));
        }
        const auto text = redis::describe_rules(rules);
        const auto back = redis::parse_rules(text);
        RC_ASSERT(back.has_value());
        RC_ASSERT(redis::describe_rules(*back) == text);
        RC_ASSERT(!redis::parse_rules(text.substr(0, text.size() - 1)));
    });
    CHECK(holds);
    for (const char* bad :
         {"", "\n", "0 60 60000000 60 60 - 1 0 - 0 r", "9 60 60000000 60 60 - 1 0 - 0 r\n",
          "0 0 60000000 60 60 - 1 0 - 0 r\n", "0 60 0 60 60 - 1 0 - 0 r\n", "0 60 60000000 60 60 x 1 0 - 0 r\n",
          "0 60 60000000 60 60 - 1 0 - 8 r\n", "0 -1 60000000 60 60 - 1 0 - 0 r\n",
          "0 60 60000000 60 60 - 1 0 - 0 %g0\n", "5 99999 60000000 60 60 - 1 0 - 0 r\n", "garbage\n"})
        CHECK_FALSE(redis::parse_rules(bad));
}

TEST_CASE("redis rules: limits beyond Redis's numbers are reported as text")
{
    CHECK_FALSE(redis::why_not_in_redis(token_bucket(1'000'000, 1s, 1'000'000)));
    CHECK_FALSE(redis::why_not_in_redis(token_bucket(1, 24h * 30, 100)));
    CHECK(redis::why_not_in_redis(token_bucket(1, 24h * 30, 10'000'000)));
    CHECK(redis::why_not_in_redis(fixed_window(max_count, 1s)));
    CHECK(redis::why_not_in_redis(fixed_window(1, 24h * 366 * 101)));
}

TEST_CASE("redis values: reservations are read as written, and given back after their lifetime")
{
    const redis::detached_rules rules(all_kinds);
    const auto& group = rules.packed();
    auto value = used_value(group);
    const auto before = value;
    for (std::size_t i = 0; i + 1 < group.size(); ++i)
        charge(group.limits(i), value.rules[i].words, noon + 5us, 2);
    value.rules[4].holders[1].count += 2;
    value.rules[4].words[0] += 2;
    value.reserved = {{11, noon + 1ms, noon + 5us, 9, {2, 2, 2, 2, 2}},
                      {12, noon + 10s, noon + 5us, 7, {0, 0, 0, 0, 0}}};
    const auto bytes = encode(group, value);
    CHECK(bytes.size() == encode(group, before).size() + 2 * 7 * (5 + group.size()));
    const auto back = redis::decode(group, bytes);
    REQUIRE(back);
    CHECK(*back == value);
    CHECK_FALSE(redis::decode(group, bytes.substr(0, bytes.size() - 7)));

    auto held = *back, lapsed = *back, free = before;
    advance(group, held, noon + 1ms - 1us);
    CHECK(held.last == noon + 1ms - 1us);
    CHECK(held.reserved.size() == 2);
    CHECK(decisions_of(group, held, held.last)[1].remaining == 0);
    advance(group, lapsed, noon + 1ms);
    advance(group, free, noon + 1ms);
    REQUIRE(lapsed.reserved.size() == 1); // the other one has not expired
    CHECK(lapsed.reserved[0].id == 12);
    CHECK(decisions_of(group, lapsed, lapsed.last) == decisions_of(group, free, free.last));
    CHECK(lapsed.rules[4].holders == free.rules[4].holders);
}

TEST_CASE("redis values: a change of limits counts reservations as used")
{
    const redis::detached_rules rules({named("f", fixed_window(5, 60s))}), next({named("f", fixed_window(9, 60s))});
    auto value = redis::fresh_value(rules.packed(), noon);
    charge(rules.packed().limits(0), value.rules[0].words, noon, 3);
    value.reserved = {{11, noon + 10s, noon, 7, {2}}};
    const auto converted = convert_value(rules.packed(), value, next.packed(), noon, carry::all);
    CHECK(converted.reserved.empty());
    CHECK(decisions_of(next.packed(), converted, noon)[0].remaining == 6);
}
