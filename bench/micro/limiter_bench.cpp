// The cost of a decision of the memory store. Three ratios, each taken within one process, because machines differ:
//   1. a two-rule decision on one key against a bare find-and-increment in boost::unordered_flat_map, with the same
//   keys in
//      the same order (target: at most 2). Measured one at a time, where each starts when the one before has finished,
//      as requests do; and back to back, where the processor overlaps several lookups of the bare map, which a lock
//      does not allow;
//   2. bytes of state per key, without its text (target: at most 64);
//   3. decisions of two threads against one (target: at least 1.8 times as many).
// `bench_limiter --ratios` prints these (script/bench --micro). `--growth KEYS` prints how the time of a decision grows
// with keys and rules, as JSON for bench/run. Without an option it prints Google Benchmark's table.
#include "limiter/memory/memory_store.hpp"

#include <benchmark/benchmark.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace headgate::limiter;
using namespace std::chrono_literals;

namespace {

constexpr time_point start{std::chrono::hours{24 * 365 * 50}};
constexpr std::size_t draws = 1 << 20; // more keys than a cache holds; drawn before the measurement

std::vector<std::string> make_keys(std::size_t n)
{
    std::vector<std::string> keys;
    keys.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "user-%07zu", i);
        keys.emplace_back(text);
    }
    return keys;
}

std::vector<std::uint32_t> make_order(std::size_t keys, unsigned seed)
{
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::uint32_t> any(0, static_cast<std::uint32_t>(keys - 1));
    std::vector<std::uint32_t> order(draws);
    std::generate(order.begin(), order.end(), [&] { return any(random); });
    return order;
}

std::vector<rule> two_rules()
{
    rule minute;
    minute.name = "minute";
    minute.count = minute.capacity = minute.initial = 60;
    minute.period = 60s;
    rule day;
    day.name = "day";
    day.kind = algorithm::fixed_window;
    day.count = 10'000;
    day.period = 24h;
    return {minute, day};
}

// Both tables hold every key before the measurement.
struct subject
{
    explicit subject(std::size_t n, std::vector<rule> rules = two_rules(), bool beside_bare = true)
        : keys(make_keys(n)), order(make_order(n, 1)), store(n * 2)
    {
        group = store.define("user", std::move(rules), start);
        decision said[max_rules_per_group];
        for (const auto& key : keys) {
            const part p{group.get(), key, {}};
            store.take({&p, 1}, start, said);
            if (beside_bare)
                bare[key] = 1;
        }
    }

    std::vector<std::string> keys;
    std::vector<std::uint32_t> order;
    memory_store store;
    std::shared_ptr<const rule_group> group;
    boost::unordered_flat_map<std::string, std::uint64_t> bare;
};

subject& with(std::size_t n)
{
    static std::map<std::size_t, subject> made;
    return made.try_emplace(n, n).first->second;
}

enum class pace
{
    one_at_a_time,
    back_to_back
};

// Returns zero computed from the result, so that the next key cannot be fetched before the result is known.
template <pace Pace>
std::size_t after(std::uint64_t result)
{
    return Pace == pace::one_at_a_time ? result >> 63 : 0;
}

// One pass over `count` draws. Each key is requested every ten seconds on average, so that nearly all are admitted.
template <pace Pace>
void decide_pass(subject& s, std::size_t from, std::size_t count, std::int64_t tick)
{
    decision said[max_rules_per_group]{};
    const auto step = std::max<std::int64_t>(1, 10'000'000 / static_cast<std::int64_t>(s.keys.size()));
    for (std::size_t i = 0; i < count; ++i) {
        const auto draw = (from + i + after<Pace>(said[0].remaining + said[1].remaining)) & (draws - 1);
        const part p{s.group.get(), s.keys[s.order[draw]], {}};
        const auto v = s.store.take({&p, 1}, start + step * microseconds{tick + static_cast<std::int64_t>(i)}, said);
        benchmark::DoNotOptimize(v.admitted);
        benchmark::DoNotOptimize(said);
    }
}
template <pace Pace>
void bare_pass(subject& s, std::size_t from, std::size_t count)
{
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto draw = (from + i + after<Pace>(last)) & (draws - 1);
        const auto found = s.bare.find(s.keys[s.order[draw]]);
        last = ++found->second;
        benchmark::DoNotOptimize(last);
    }
}

std::int64_t tick = 0;

template <pace Pace>
void two_rule_decision(benchmark::State& state)
{
    auto& s = with(static_cast<std::size_t>(state.range(0)));
    constexpr std::size_t batch = 1024;
    std::size_t from = 0;
    for (auto _ : state) {
        decide_pass<Pace>(s, from, batch, tick);
        from += batch;
        tick += std::int64_t{batch};
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
}
template <pace Pace>
void find_and_increment(benchmark::State& state)
{
    auto& s = with(static_cast<std::size_t>(state.range(0)));
    constexpr std::size_t batch = 1024;
    std::size_t from = 0;
    for (auto _ : state) {
        bare_pass<Pace>(s, from, batch);
        from += batch;
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
}
BENCHMARK(two_rule_decision<pace::one_at_a_time>)->Arg(10'000)->Arg(1'000'000);
BENCHMARK(find_and_increment<pace::one_at_a_time>)->Arg(10'000)->Arg(1'000'000);
BENCHMARK(two_rule_decision<pace::back_to_back>)->Arg(10'000)->Arg(1'000'000);
BENCHMARK(find_and_increment<pace::back_to_back>)->Arg(10'000)->Arg(1'000'000);

// The ratios.

template <class F>
double ns_each(std::size_t n, F f)
{
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / static_cast<double>(n);
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

constexpr int repetitions = 15;

template <pace Pace>
void print_decision_ratio(std::size_t keys)
{
    auto& s = with(keys);
    std::vector<double> decide, bare, ratio;
    for (int i = 0; i < repetitions; ++i) { // alternating, so that noise affects both
        bare.push_back(ns_each(draws, [&] { bare_pass<Pace>(s, 0, draws); }));
        decide.push_back(ns_each(draws, [&] { decide_pass<Pace>(s, 0, draws, tick); }));
        tick += std::int64_t{draws};
        ratio.push_back(decide.back() / bare.back());
    }
    std::printf("| two-rule decision, %7zu keys, %s | %.1f ns | find-and-increment %.1f ns | %.2f | <= 2.00 |\n", keys,
                Pace == pace::one_at_a_time ? "one at a time" : "back to back", median(decide), median(bare),
                median(ratio));
}

void print_bytes(std::size_t n)
{
    memory_store store(n);
    const auto group = store.define("user", two_rules(), start);
    const auto keys = make_keys(n);
    std::size_t text = 0;
    decision said[2];
    for (const auto& key : keys) {
        const part p{group.get(), key, {}};
        store.take({&p, 1}, start, said);
        text += key.size();
    }
    const auto s = store.stats();
    std::printf("| state a key, %7lu keys | %6.1f B | text %.1f B | %.1f | <= 64 |\n",
                static_cast<unsigned long>(s.keys), static_cast<double>(s.bytes) / static_cast<double>(s.keys),
                static_cast<double>(text) / static_cast<double>(s.keys),
                static_cast<double>(s.bytes - text) / static_cast<double>(s.keys));
}

void print_threads(std::size_t keys)
{
    auto& s = with(keys);
    const auto run = [&](std::size_t threads) {
        const auto each = ns_each(draws * threads, [&] {
            std::vector<std::thread> all;
            for (std::size_t t = 0; t < threads; ++t)
                all.emplace_back(
                    [&s, t, threads] { decide_pass<pace::back_to_back>(s, t * (draws / threads), draws, tick); });
            for (auto& one : all)
                one.join();
        });
        tick += std::int64_t{draws};
        return each;
    };
    std::vector<double> one, two, ratio;
    for (int i = 0; i < repetitions; ++i) {
        one.push_back(run(1));
        two.push_back(run(2));
        ratio.push_back(one.back() / two.back());
    }
    std::printf("| two threads, %7zu keys | %6.1f M/s | one thread %.1f M/s | %.2f | >= 1.80 |\n", keys,
                1000 / median(two), 1000 / median(one), median(ratio));
}

// How the cost grows: medians of a few passes, one at a time.

double decision_ns(subject& s)
{
    std::vector<double> seen;
    for (int i = 0; i < 5; ++i) {
        seen.push_back(ns_each(draws, [&] { decide_pass<pace::one_at_a_time>(s, 0, draws, tick); }));
        tick += std::int64_t{draws};
    }
    return median(seen);
}

// Buckets and windows alternate, as in usual chains.
std::vector<rule> many_rules(std::size_t n)
{
    std::vector<rule> rules;
    for (std::size_t i = 0; i < n; ++i) {
        rules.push_back(two_rules()[i % 2]);
        rules.back().name += std::to_string(i);
    }
    return rules;
}

void print_curve(const char* title, const char* by, const char* unit,
                 const std::vector<std::pair<std::size_t, double>>& points)
{
    std::printf("{\"title\": \"%s\", \"by\": \"%s\", \"unit\": \"%s\", \"points\": [", title, by, unit);
    const char* comma = "";
    for (const auto& [x, y] : points) {
        std::printf("%s[%zu, %.2f]", comma, x, y);
        comma = ", ";
    }
    std::printf("]}");
}

void print_growth(std::size_t most_keys)
{
    std::vector<std::pair<std::size_t, double>> time, bytes, rules;
    for (std::size_t n = 1000; n <= most_keys; n *= 10) {
        subject s(n, two_rules(), false);
        time.emplace_back(n, decision_ns(s));
        const auto stats = s.store.stats();
        bytes.emplace_back(n, static_cast<double>(stats.bytes) / static_cast<double>(stats.keys));
    }
    for (std::size_t n = 1; n <= max_rules_per_group; n *= 2) {
        subject s(10'000, many_rules(n), false);
        rules.emplace_back(n, decision_ns(s));
    }
    std::printf("[");
    print_curve("The limiter alone: keys, two rules", "keys", "ns a decision", time);
    std::printf(",\n");
    print_curve("The limiter alone: memory of a key with its text", "keys", "bytes a key", bytes);
    std::printf(",\n");
    print_curve("The limiter alone: rules of a chain, 10,000 keys", "rules", "ns a decision", rules);
    std::printf("]\n");
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 3 && std::strcmp(argv[1], "--growth") == 0) {
        print_growth(std::strtoull(argv[2], nullptr, 10));
        return 0;
    }
    if (argc == 2 && std::strcmp(argv[1], "--ratios") == 0) {
        std::puts("| what | headgate | against | ratio | target |\n|---|---|---|---|---|");
        print_decision_ratio<pace::one_at_a_time>(10'000);
        print_decision_ratio<pace::one_at_a_time>(1'000'000);
        print_decision_ratio<pace::back_to_back>(10'000);
        print_decision_ratio<pace::back_to_back>(1'000'000);
        print_bytes(1'000'000);
        print_threads(10'000);
        print_threads(1'000'000);
        return 0;
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
