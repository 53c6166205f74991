// After warm-up a decision about a known key allocates nothing. Its own executable, because it replaces operator new.
#include "tests/limiter/memory_under_test.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}

// Not inlined: the compiler would see malloc's memory go to operator delete and warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t n)
{
    ++allocations;
    if (void* p = std::malloc(n ? n : 1))
        return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace headgate::testing;

TEST_CASE("memory: known keys are decided without a heap allocation, admitted or refused, in chains too")
{
    memory_under_test s;
    s.define("a", {named("x", token_bucket(1, 1s, 3)), named("y", fixed_window(1000, 60s))}, start);
    s.define("b", {named("z", sliding_window(100, 60s)), named("log", sliding_log(8, 60s))}, start);
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i)
        keys.push_back("user-with-a-key-longer-than-a-small-string-" + std::to_string(i));
    decision said[max_decisions];
    const auto pass = [&](time_point now) {
        for (const auto& key : keys) {
            const part parts[] = {{s.groups["a"].get(), key, {}}, {s.groups["b"].get(), key, {}}};
            for (int i = 0; i < 5; ++i) {
                s.store.take({parts, 1}, now, said);
                s.store.take(parts, now, said);
                s.store.look(parts, now, said);
            }
            s.store.give_back(parts, now, now);
        }
    };
    for (int i = 0; i < 20; ++i)
        pass(start + i * 1s);
    const long before = allocations;
    for (int i = 20; i < 50; ++i)
        pass(start + i * 1s);
    CHECK(allocations == before);
}
