// Variants of a group: one key, decided with other numbers on another plan. A change of plan neither loses use nor
// gives out quota.
#include "limiter/memory/snapshot.hpp"
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <unistd.h>

using namespace headgate::testing;

namespace {

const auto noon = start + 5h;

rule minute(std::uint64_t n) { return named("minute", token_bucket(n, 60s, n)); }
rule day(std::uint64_t n) { return named("day", fixed_window(n, 24h)); }
rule log_of(std::uint64_t n) { return named("minute", sliding_log(n, 60s)); }

struct users
{
    memory_store store{10'000};
    std::shared_ptr<const rule_group> group;

    void define(std::vector<rule> rules, rule_variants variants, time_point now = noon)
    {
        group = store.define("user", std::move(rules), now, std::move(variants));
    }
    verdict take(const rule_group& by, std::string_view key, time_point now, std::uint64_t cost = 1)
    {
        const std::vector<std::uint64_t> costs(by.size(), cost);
        const part p{&by, key, costs};
        return store.take({&p, 1}, now, decisions);
    }
    int takes(int n, std::string_view plan, std::string_view key, time_point now)
    {
        int passed = 0;
        for (int i = 0; i < n; ++i)
            passed += take(group->variant(plan), key, now).admitted;
        return passed;
    }
    std::array<decision, max_decisions> decisions;
};

} // namespace

TEST_CASE("variants: each plan has its own numbers, and other keys are not affected")
{
    users all;
    all.define({minute(5), day(100)}, {{"pro", {minute(50), day(1'000)}}});
    CHECK(all.takes(60, "pro", "ann", noon) == 50);
    CHECK(all.takes(60, "", "bob", noon) == 5);
    CHECK(all.takes(60, "no such plan", "carl", noon) == 5);
    CHECK(all.store.stats().keys == 3);
}

TEST_CASE("variants: a key that changes plans back and forth keeps all it has used")
{
    const auto check = [](auto limit) {
        users all;
        all.define({limit(10)}, {{"pro", {limit(100)}}});
        CHECK(all.takes(30, "pro", "ann", noon) == 30);
        CHECK_FALSE(all.take(all.group->variant(""), "ann", noon).admitted); // 30 used of 10
        CHECK(all.decisions[0].remaining == 0);
        // Requests on the lower plan in between do not clear what was used.
        CHECK(all.takes(200, "pro", "ann", noon) == 70);
        CHECK(all.store.stats().keys == 1);
    };
    SUBCASE("token bucket") { check(minute); }
    SUBCASE("fixed window") { check(day); }
    SUBCASE("sliding log") { check(log_of); }
    SUBCASE("sliding window")
    {
        check([](std::uint64_t n) { return named("minute", sliding_window(n, 60s)); });
    }
    SUBCASE("concurrency")
    {
        check([](std::uint64_t n) { return named("minute", concurrency(n)); });
    }
}

TEST_CASE("variants: a variant may lack a rule that others have")
{
    users all;
    all.define({minute(5), day(100)}, {{"pro", {day(100)}}});
    CHECK(all.takes(60, "pro", "ann", noon) == 60);
    CHECK(all.takes(60, "", "ann", noon) == 5);
    CHECK(all.takes(60, "pro", "ann", noon) == 35); // the day counts requests on both plans
}

TEST_CASE("variants: a rule that is unlimited on one plan admits all, and keeps its use for other plans")
{
    auto open = minute(5);
    open.unlimited = true;
    users all;
    all.define({minute(5)}, {{"gold", {open}}});
    CHECK(all.takes(9, "", "ann", noon) == 5);
    const auto& gold = all.group->variant("gold");
    for (int i = 0; i < 20; ++i) // the caller passes cost 0
        CHECK(all.take(gold, "ann", noon, 0).admitted);
    CHECK(all.takes(9, "", "ann", noon) == 0);
}

TEST_CASE("variants: a concurrency rule added by a reload does not count requests of the old configuration")
{
    users all;
    all.define({minute(5)}, {});
    const auto old = all.group;
    all.define({minute(5), named("at-once", concurrency(1))}, {});
    CHECK(all.take(*old, "ann", noon).admitted);
    CHECK(all.take(*old, "ann", noon).admitted);
    CHECK(all.take(*all.group, "ann", noon).admitted); // one in flight is admitted
    CHECK_FALSE(all.take(*all.group, "ann", noon).admitted);
}

TEST_CASE("variants: a reload converts each variant to its successor, and a removed one to the group itself")
{
    users all;
    all.define({minute(10)}, {{"pro", {minute(100)}}, {"gold", {minute(200)}}});
    CHECK(all.takes(80, "pro", "ann", noon) == 80);
    CHECK(all.takes(80, "gold", "bob", noon) == 80);
    const auto old = all.group;
    all.define({minute(10)}, {{"pro", {minute(120)}}});
    CHECK(all.take(old->variant("pro"), "ann", noon).admitted); // a request of the old configuration
    CHECK(all.takes(100, "pro", "ann", noon) == 39);
    CHECK(all.takes(100, "", "bob", noon) == 0);
    CHECK(all.takes(100, "gold", "bob", noon) == 0);
}

TEST_CASE("variants: a correction applies to the variant that was charged")
{
    users all;
    all.define({minute(10)}, {{"pro", {minute(100)}}});
    const auto& pro = all.group->variant("pro");
    const auto charged = all.take(pro, "ann", noon, 60).charged_at;
    const std::vector<std::uint64_t> sixty{60}, twenty{20};
    all.store.correct({&pro, "ann", sixty}, twenty, charged, noon);
    CHECK(all.takes(200, "pro", "ann", noon) == 80);
}

TEST_CASE("variants: an operator's block does not change the plan")
{
    users all;
    all.define({minute(10)}, {{"pro", {minute(100)}}});
    CHECK(all.takes(40, "pro", "ann", noon) == 40);
    REQUIRE(all.store.block("user", "ann", noon + 1s, noon));
    CHECK(all.takes(1, "pro", "ann", noon) == 0);
    const auto seen = all.store.inspect("user", "ann", noon);
    REQUIRE(seen);
    CHECK(seen->rules->variant_name() == "pro");
    CHECK(seen->decisions.at(0).limit == 100);
    REQUIRE(all.store.unblock("user", "ann", noon));
    CHECK(all.takes(200, "pro", "ann", noon) == 60);
}

TEST_CASE("variants: when the store is full each plan has its own overflow counters")
{
    users all;
    auto& store = all.store;
    all.define({minute(10)}, {{"pro", {minute(100)}}});
    for (int i = 0; i < 20'000; ++i)
        all.take(*all.group, "filler " + std::to_string(i), noon);
    REQUIRE(store.stats().shared_takes > 0);
    // Many new keys: as many pass as the shards have overflow counters, and each plan has its own.
    int pro = 0, free = 0;
    for (int i = 0; i < 20'000; ++i) {
        const auto key = "late " + std::to_string(i);
        pro += all.take(all.group->variant("pro"), key, noon).admitted;
        free += all.take(*all.group, key + "x", noon).admitted;
    }
    CHECK(pro == 100 * static_cast<int>(store.shard_count()));
    CHECK(free == 0);
}

TEST_CASE("variants: a snapshot restores each key on its plan")
{
    const auto path = std::filesystem::temp_directory_path() / ("headgate-variants-" + std::to_string(::getpid()));
    users before;
    before.define({minute(10)}, {{"pro", {minute(100)}}});
    CHECK(before.takes(80, "pro", "ann", noon) == 80);
    REQUIRE(save_snapshot(before.store, path, noon).error.empty());
    users after;
    after.define({minute(10)}, {{"pro", {minute(100)}}});
    CHECK(load_snapshot(after.store, path, noon).keys == 1);
    CHECK(after.takes(200, "pro", "ann", noon) == 20);
    std::filesystem::remove(path);
}
