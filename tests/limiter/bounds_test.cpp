// The bounds of the memory store: what is kept, what is evicted, and what happens when nothing can be evicted.
#include "tests/limiter/memory_under_test.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace headgate::testing;

namespace {

std::size_t resident_bytes()
{
    std::ifstream in("/proc/self/statm");
    std::size_t pages = 0, resident = 0;
    in >> pages >> resident;
    return resident * 4096;
}

// The admissions of one key under 1 per 10 s with a burst of 3 and 5 per minute, from the definition.
struct reference_use
{
    std::vector<time_point> calls;

    bool admit(time_point now)
    {
        calls.push_back(now);
        bool fine = true;
        for (std::size_t i = calls.size(); i > 0; --i) {
            const auto since = now - calls[i - 1];
            const auto n = static_cast<std::int64_t>(calls.size() - i + 1);
            fine = fine && (n - 3) * 10s <= since;
            const auto minute = [](time_point t) { return t.time_since_epoch() / 60s; };
            fine = fine && (minute(calls[i - 1]) != minute(now) || n <= 5);
        }
        return fine;
    }
};

chain one(const std::string& key) { return {{"a", key}}; }

} // namespace

TEST_CASE("memory: rules that share a key share one entry")
{
    memory_under_test s;
    s.define("a", {named("x", token_bucket(1, 1s, 5)), named("y", fixed_window(9, 60s)), named("z", concurrency(3))},
             start);
    s.take(one("k"), start);
    CHECK(s.store.stats().keys == 1);
}

TEST_CASE("memory: a refused key leaves no entry")
{
    memory_under_test s;
    s.define("a", {named("x", fixed_window(5, 60s))}, start);
    CHECK_FALSE(s.take({{"a", "k", {6}}}, start).admitted);
    CHECK(s.store.stats().keys == 0);
}

TEST_CASE("memory: only recovered keys are evicted, and their room is used for new keys")
{
    memory_under_test s(100);
    s.define("a", {named("x", token_bucket(1, 1s, 3))}, start);
    for (int i = 0; i < 100; i += 2)
        CHECK(s.take(one("old" + std::to_string(i)), start).admitted);
    for (int i = 1; i < 100; i += 2)
        CHECK(s.take(one("old" + std::to_string(i)), start + 1s - 1us).admitted);
    CHECK(s.store.stats().keys == 100);
    // One second after their only request the even keys have recovered; the odd keys recover a microsecond later.
    for (int i = 0; i < 50; ++i)
        CHECK(s.take(one("new" + std::to_string(i)), start + 1s).admitted);
    CHECK(s.store.stats().keys == 100);
    CHECK(s.store.stats().shared_takes == 0);
    CHECK(s.store.stats().evicted == 50);
    for (int i = 1; i < 100; i += 2)
        CHECK(s.inspect("a", "old" + std::to_string(i), start + 1s)->decisions[0].remaining == 2);
}

TEST_CASE("memory: when the store is full new keys share overflow counters, which are counted and inherited")
{
    memory_under_test s(10);
    s.define("a", {named("x", fixed_window(5, 60s))}, start);
    for (int i = 0; i < 10; ++i)
        CHECK(s.take(one("old" + std::to_string(i)), start).admitted);
    int admitted = 0;
    for (int i = 0; i < 20; ++i)
        admitted += s.take(one("new" + std::to_string(i)), start).admitted ? 1 : 0;
    CHECK(admitted == 5); // all new keys together
    CHECK(s.store.stats().shared_takes == 20);
    CHECK(s.takes(9, one("old1"), start) == 4); // a key with an entry is not affected
    s.reset("a", "old0", start);                // room for one key
    CHECK_FALSE(s.take(one("new0"), start).admitted);
    CHECK_FALSE(s.look(one("new1"), start).admitted);
    CHECK(s.take(one("new0"), start + 60s).admitted); // the overflow counters have recovered and are erased
    CHECK(s.takes(9, one("new0"), start + 60s) == 4);
}

TEST_CASE("memory: blocking a new key does not bypass the overflow counters")
{
    memory_under_test s(4);
    s.define("a", {named("x", fixed_window(2, 60s))}, start);
    for (int i = 0; i < 4; ++i)
        s.take(one("old" + std::to_string(i)), start);
    CHECK(s.takes(5, one("new"), start) == 2);
    CHECK_FALSE(s.block("a", "new", start + 1s, start)); // no room: block() returns false
    s.reset("a", "old0", start);
    CHECK(s.block("a", "new", start + 1s, start));
    CHECK(s.takes(5, one("new"), start + 1s) == 0);
}

TEST_CASE("memory: a request that started on the overflow counters is released there")
{
    memory_under_test s(2);
    s.define("a", {named("open", concurrency(3))}, start);
    s.take(one("old0"), start);
    s.take(one("old1"), start);
    CHECK(s.takes(9, one("new"), start) == 3);
    s.give_back(one("old0"), start, start); // room again: `new` may get an entry now
    for (int i = 0; i < 3; ++i)
        s.give_back(one("new"), start, start);
    CHECK(s.takes(9, one("old2"), start) == 3);
    CHECK(s.takes(9, one("other"), start) == 3); // on the overflow counters, which are free
}

TEST_CASE("memory: chains over eight groups stay exact on overflow counters")
{
    memory_under_test s(2);
    chain all;
    for (int g = 0; g < 64; ++g) {
        const auto name = "g" + std::to_string(g);
        s.define(name, {named("log", sliding_log(100, 60s))}, start);
    }
    s.take({{"g0", "x"}}, start);
    s.take({{"g0", "y"}}, start);
    for (int g = 0; g + 8 <= 64; g += 8) {
        all.clear();
        for (int i = 0; i < 8; ++i)
            all.push_back({"g" + std::to_string(g + i), "k"});
        for (int call = 0; call < 150; ++call)
            CHECK(s.take(all, start + microseconds{call}).admitted == (call < 100));
    }
}

TEST_CASE("memory: ten million keys in a store of 100,000 stay within its bound, and no key is admitted early")
{
    constexpr int keys = sanitized ? 300'000 : 10'000'000;
    constexpr std::size_t room = sanitized ? 3'000 : 100'000;
    const auto before = resident_bytes();
    memory_store store(room);
    const auto group =
        store.define("a", {named("x", token_bucket(1, 10s, 3)), named("y", fixed_window(5, 60s))}, start);
    const auto bound = store.bound_bytes();
    decision decisions[2];
    const auto take = [&](std::string_view key, time_point now) {
        const part p{group.get(), key, {}};
        return store.take({&p, 1}, now, decisions).admitted;
    };
    // Heavy users, over their limit from the start, send requests all the time.
    std::array<std::string, 50> heavy;
    std::array<reference_use, 50> used{};
    for (std::size_t i = 0; i < heavy.size(); ++i)
        heavy[i] = "heavy-" + std::to_string(i);
    int early = 0;
    std::uint64_t most_bytes = 0;
    char text[32];
    for (int i = 0; i < keys; ++i) {
        const auto now = start + microseconds{i} * (sanitized ? 700 : 20); // two hundred seconds in total
        const auto n = std::snprintf(text, sizeof text, "key-%d", i);
        take({text, static_cast<std::size_t>(n)}, now);
        if (i % 100 == 0) {
            const auto h = static_cast<std::size_t>(i / 100) % heavy.size();
            if (take(heavy[h], now))
                early += used[h].admit(now) ? 0 : 1;
        }
        if (i % 100'000 == 0)
            most_bytes = std::max(most_bytes, store.stats().bytes);
    }
    const auto stats = store.stats();
    CHECK(early == 0);
    CHECK(stats.keys <= room);
    CHECK(std::max(most_bytes, stats.bytes) <= bound);
    CHECK(stats.shared_takes > 0);
    CHECK(stats.evicted > 0);
    if (!sanitized)
        CHECK(resident_bytes() - before <= bound);
}

TEST_CASE("memory: keys that are huge, empty, contain NULs or look like a digest stay distinct")
{
    memory_under_test s;
    s.define("a", {named("x", fixed_window(1, 60s))}, start);
    s.define("b", {named("x", fixed_window(1, 60s))}, start);
    const std::string big(1 << 20, 'x'), nul("a\0b", 3), nul2("a\0c", 3);
    std::vector<std::string> keys{
        "",        big,         big + "y",           nul, nul2, "a", std::string(200, 'k'), std::string(201, 'k'),
        "sha256:", "sha256:00", std::string("\0", 1)};
    for (const auto& key : keys)
        CHECK(s.take(one(key), start).admitted);
    for (const auto& key : keys)
        CHECK_FALSE(s.take(one(key), start).admitted);
    // A client cannot use the stored text of a long key as a key with the same counters.
    for (const auto& seen : s.list("a", "sha256:", start)) {
        CHECK(seen.key.size() <= max_key_bytes);
        CHECK(s.take(one(seen.key), start).admitted);
    }
    CHECK(s.take({{"b", ""}}, start).admitted); // the same text in another group is another key
    const part unset{s.groups["b"].get(), std::string_view{}, {}};
    decision decisions[1];
    CHECK_FALSE(s.store.take({&unset, 1}, start, decisions).admitted);
}

TEST_CASE("memory: every store has its own hash secret, so that clients cannot choose colliding keys")
{
    const auto order_of = [] {
        memory_store store(1000);
        const auto group = store.define("a", {named("x", fixed_window(1, 60s))}, start);
        decision decisions[1];
        for (int i = 0; i < 100; ++i) {
            const auto key = std::to_string(i);
            const part p{group.get(), key, {}};
            store.take({&p, 1}, start, decisions);
        }
        std::string order;
        store.visit(0, [&](const key_table::entry& e, microseconds) { order += std::string(e.key) + ' '; });
        return order;
    };
    CHECK(order_of() != order_of());
    const key_hash a({1, 2}), b({1, 3});
    int same = 0;
    for (int i = 0; i < 1000; ++i)
        same += a(1, std::to_string(i)) % 64 == b(1, std::to_string(i)) % 64;
    CHECK(same < 60);
    CHECK(a(1, "k") != a(2, "k"));
}

TEST_CASE("memory: the hash depends on every byte of a key and on its length")
{
    const key_hash hash({7, 9});
    std::set<std::uint64_t> seen;
    std::size_t texts = 0;
    const auto add = [&](const std::string& text) {
        seen.insert(hash(1, text));
        ++texts;
    };
    for (std::size_t n = 0; n <= max_key_bytes; ++n) {
        const std::string zeros(n, '\0');
        add(zeros);
        for (std::size_t i = 0; i < n; ++i) {
            auto text = zeros;
            text[i] = '\1';
            add(text);
            text[i] = '\x80';
            add(text);
        }
    }
    CHECK(seen.size() == texts);
}

TEST_CASE("memory: keys with a common pattern spread evenly over the index")
{
    // Patterns that an attacker could use: counters, one repeated byte, a long common prefix. 20,000 keys each over 64
    // places.
    const std::vector<std::function<std::string(int)>> patterns{
        [](int i) { return std::to_string(i); },
        [](int i) { return std::string(static_cast<std::size_t>(1 + i % 200), static_cast<char>('a' + i / 200)); },
        [](int i) { return std::string(150, 'x') + std::to_string(i * 1024); },
        [](int i) { return std::string(reinterpret_cast<const char*>(&i), sizeof i); },
    };
    const key_hash hash({3, 4});
    for (const auto& pattern : patterns) {
        for (const int shift : {0, 32, 58}) { // the bits of the shard, of the line, and the highest
            std::vector<int> places(64);
            for (int i = 0; i < 20'000; ++i)
                ++places[hash(1, pattern(i)) >> shift & 63];
            const auto [least, most] = std::minmax_element(places.begin(), places.end());
            CHECK(*least > 200); // 312 on average; six standard deviations of 18
            CHECK(*most < 425);
        }
    }
}

TEST_CASE("memory: a store without room for one key, and a group without rules, are refused")
{
    CHECK_THROWS(memory_store(0));
    memory_store store(1);
    CHECK_THROWS(store.define("a", {}, start));
}
