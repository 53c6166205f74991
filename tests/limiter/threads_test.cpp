// Many threads at once: exact totals, no deadlock, and reloads under way. Under tsan too, on fewer calls.
#include "tests/limiter/memory_under_test.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <thread>

using namespace headgate::testing;

namespace {

constexpr int calls = sanitized ? 10'000 : 100'000;

template <class F>
void on_threads(int n, F f)
{
    std::barrier together(n);
    std::vector<std::thread> all;
    for (int t = 0; t < n; ++t) {
        all.emplace_back([&, t] {
            together.arrive_and_wait();
            f(t);
        });
    }
    for (auto& one : all)
        one.join();
}

} // namespace

TEST_CASE("threads: 8 threads with 100,000 takes each on four keys admit exactly the limit, for every algorithm")
{
    for (const auto kind : every_algorithm) {
        CAPTURE(name_of(kind));
        memory_under_test s;
        const std::uint64_t limit = kind == algorithm::sliding_log ? 5'000 : 20'000 - 7;
        auto r = kind <= algorithm::gcra ? bucket_rule(kind, 1, 720h, limit) : window(kind, limit, 720h);
        s.define("a", {named("r", r), named("other", fixed_window(1u << 30, 720h))}, start);
        const auto group = s.groups["a"];
        std::array<std::atomic<std::uint64_t>, 4> admitted{};
        on_threads(8, [&](int t) {
            const std::string keys[] = {"a", "b", "c", "d"};
            decision said[2];
            const int mine = kind == algorithm::sliding_log ? calls / 10 : calls;
            for (int i = 0; i < mine; ++i) {
                const auto k = static_cast<std::size_t>(i + t) % 4;
                const part p{group.get(), keys[k], {}};
                admitted[k] += s.store.take({&p, 1}, start, said).admitted ? 1u : 0u;
            }
        });
        const auto asked = static_cast<std::uint64_t>(kind == algorithm::sliding_log ? calls / 10 : calls) * 8 / 4;
        for (const auto& n : admitted)
            CHECK(n == std::min(limit, asked));
    }
}

TEST_CASE("threads: chains over two keys in opposite orders never deadlock, and each stays exact")
{
    memory_under_test s;
    s.define("a", {named("a", fixed_window(30'000, 720h))}, start);
    s.define("b", {named("b", fixed_window(20'000, 720h))}, start);
    std::atomic<int> admitted{0};
    on_threads(8, [&](int t) {
        for (int i = 0; i < calls / 10; ++i) {
            const auto key = std::to_string(i % 3);
            const chain forth{{"a", key}, {"b", key}}, back{{"b", key}, {"a", key}};
            admitted += s.take(t % 2 ? forth : back, start).admitted ? 1 : 0;
        }
    });
    const int asked = calls / 10 * 8;
    CHECK(admitted == std::min(asked, 60'000));
    std::uint64_t used_a = 0, used_b = 0;
    for (const char* key : {"0", "1", "2"}) {
        used_a += 30'000 - s.inspect("a", key, start)->decisions[0].remaining;
        used_b += 20'000 - s.inspect("b", key, start)->decisions[0].remaining;
    }
    CHECK(used_a == static_cast<std::uint64_t>(admitted));
    CHECK(used_b == static_cast<std::uint64_t>(admitted)); // a refusal by b charged nothing to a
}

TEST_CASE("threads: reloads while four threads take lose no call and hand out none")
{
    memory_under_test s;
    const auto rules = [](std::uint64_t limit) {
        return std::vector{named("r", fixed_window(limit, 720h)), named("s", token_bucket(1, 720h, limit))};
    };
    constexpr std::uint64_t limit = 4'000'000;
    s.define("a", rules(limit), start);
    const auto first = s.groups["a"];
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> admitted{0};
    std::thread reloads([&] {
        std::uint64_t more = 0;
        while (!done) {
            s.store.define("a", rules(limit + ++more % 5), start);
            std::this_thread::yield();
        }
        s.store.define("a", rules(limit), start);
    });
    on_threads(4, [&](int t) {
        decision said[2];
        for (int i = 0; i < calls / 4; ++i) {
            const auto key = std::to_string((i + t) % 50);
            // Half of them hold on to the version they started with, as a request under way does.
            const auto group = i % 2 ? first : s.store.groups()[0];
            const part p{group.get(), key, {}};
            admitted += s.store.take({&p, 1}, start, said).admitted ? 1u : 0u;
        }
    });
    done = true;
    reloads.join();
    CHECK(admitted == static_cast<std::uint64_t>(calls));
    std::uint64_t used = 0, taken = 0;
    for (int k = 0; k < 50; ++k) {
        const auto seen = s.store.inspect("a", std::to_string(k), start);
        REQUIRE(seen);
        used += limit - seen->decisions[0].remaining;
        taken += limit - seen->decisions[1].remaining;
    }
    CHECK(used == admitted);
    CHECK(taken == admitted);
}

TEST_CASE("threads: reservations settled and expiring at once give back exactly what they held")
{
    memory_under_test s;
    s.define("a", {named("r", fixed_window(1u << 30, 720h))}, start);
    on_threads(4, [&](int t) {
        for (int i = 0; i < calls / 50; ++i) {
            reservation id = 0;
            const auto now = start + i * 1us;
            s.reserve({{"a", "k", {10}}}, now, t % 2 ? microseconds{1us} : microseconds{24h}, id);
            if (t % 2 == 0)
                s.settle(id, {1}, now);
        }
    });
    s.expire(start + 1h);
    const auto used = (1u << 30) - s.inspect("a", "k", start + 1h)->decisions[0].remaining;
    CHECK(used == static_cast<std::uint64_t>(calls / 50 * 2));
    CHECK(s.store.stats().open_reservations == 0);
    CHECK(s.store.stats().expired_reservations == static_cast<std::uint64_t>(calls / 50 * 2));
}
