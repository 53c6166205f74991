// Many threads: exact totals, no deadlock, reloads during requests. Also run under tsan, with fewer requests.
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
            decision decisions[2];
            const int mine = kind == algorithm::sliding_log ? calls / 10 : calls;
            for (int i = 0; i < mine; ++i) {
                const auto k = static_cast<std::size_t>(i + t) % 4;
                const part p{group.get(), keys[k], {}};
                admitted[k] += s.store.take({&p, 1}, start, decisions).admitted ? 1u : 0u;
            }
        });
        const auto sent = static_cast<std::uint64_t>(kind == algorithm::sliding_log ? calls / 10 : calls) * 8 / 4;
        for (const auto& n : admitted)
            CHECK(n == std::min(limit, sent));
    }
}

TEST_CASE("threads: chains over two keys in opposite orders do not deadlock and stay exact")
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
    const int sent = calls / 10 * 8;
    CHECK(admitted == std::min(sent, 60'000));
    std::uint64_t used_a = 0, used_b = 0;
    for (const char* key : {"0", "1", "2"}) {
        used_a += 30'000 - s.inspect("a", key, start)->decisions[0].remaining;
        used_b += 20'000 - s.inspect("b", key, start)->decisions[0].remaining;
    }
    CHECK(used_a == static_cast<std::uint64_t>(admitted));
    CHECK(used_b == static_cast<std::uint64_t>(admitted)); // a refusal by b charges nothing to a
}

TEST_CASE("threads: reloads while four threads take neither lose requests nor give out quota")
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
        decision decisions[2];
        for (int i = 0; i < calls / 4; ++i) {
            const auto key = std::to_string((i + t) % 50);
            // Half of the requests use the version they started with, as a request during a reload does.
            const auto group = i % 2 ? first : s.store.groups()[0];
            const part p{group.get(), key, {}};
            admitted += s.store.take({&p, 1}, start, decisions).admitted ? 1u : 0u;
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

TEST_CASE("threads: charges corrected by four threads at once leave exactly the corrected costs")
{
    memory_under_test s;
    s.define("a", {named("r", fixed_window(1u << 30, 720h))}, start);
    const auto group = s.groups["a"];
    on_threads(4, [&](int t) {
        const std::vector<std::uint64_t> ten{10}, one{1}, none;
        decision decided[1];
        for (int i = 0; i < calls / 50; ++i) {
            const part p{group.get(), "k", ten};
            const auto now = start + i * 1us;
            const auto charged_at = s.store.take({&p, 1}, now, decided).charged_at;
            s.store.correct(p, t % 2 ? none : one, charged_at, now);
        }
    });
    const auto used = (1u << 30) - s.inspect("a", "k", start + 1h)->decisions[0].remaining;
    CHECK(used == static_cast<std::uint64_t>(calls / 50 * 2));
}
