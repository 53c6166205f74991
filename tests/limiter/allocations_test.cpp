// After a warm-up, decisions on known keys do not allocate. A separate executable, because it replaces operator new.
#include "tests/limiter/memory_under_test.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}

// Not inlined: otherwise the compiler pairs malloc with operator delete and warns of a mismatch.
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

TEST_CASE("memory: decisions on known keys do not allocate, admitted or refused, in chains too")
{
    memory_under_test s;
    s.define("a", {named("x", token_bucket(1, 1s, 3)), named("y", fixed_window(1000, 60s))}, start);
    s.define("b", {named("z", sliding_window(100, 60s)), named("log", sliding_log(8, 60s))}, start);
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i)
        keys.push_back("user-with-a-key-longer-than-a-small-string-" + std::to_string(i));
    decision decisions[max_decisions];
    const auto pass = [&](time_point now) {
        for (const auto& key : keys) {
            const part parts[] = {{s.groups["a"].get(), key, {}}, {s.groups["b"].get(), key, {}}};
            for (int i = 0; i < 5; ++i) {
                s.store.take({parts, 1}, now, decisions);
                s.store.take(parts, now, decisions);
                s.store.look(parts, now, decisions);
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
