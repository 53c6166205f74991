// Once its buffer has grown, a decision in Redis allocates nothing. A separate executable, because it replaces
// operator new.
#include "limiter/redis/redis_key.hpp"
#include "limiter/redis/take_call.hpp"
#include "tests/support/rules.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}

// Not inlined: the compiler would see that malloc's memory is given to operator delete, and warn.
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
namespace redis = headgate::limiter::redis;

TEST_CASE("redis: a chain's call is written and its reply read without a heap allocation")
{
    auto day = named("day", fixed_window(10'000, 24h));
    day.calendar = calendar_unit::day;
    const redis::detached_rules rules({named("minute", token_bucket(60, 60s, 60)), day});
    // Admitted, at `start`, without a previous value.
    std::string reply(9, '\0');
    reply[0] = 1;
    std::uint64_t now = static_cast<std::uint64_t>(start.time_since_epoch().count());
    for (std::size_t i = 1; i < 8; ++i, now >>= 8)
        reply[i] = static_cast<char>(now & 0xff);
    std::string key, command;
    decision result[max_decisions];
    verdict v;
    const auto ask = [&] {
        key.clear();
        command.clear();
        redis::append_key(key, "api", "a user with a name of some length");
        const redis::chain_part part{&rules.packed(), key, {}};
        const redis::take_options how{.guess = start};
        append_take(command, {&part, 1}, how);
        return read_take(reply, {&part, 1}, how, v, result).status;
    };
    ask();
    const long before = allocations;
    bool done = true;
    for (int i = 0; i < 100; ++i)
        done = done && ask() == redis::call_status::done;
    CHECK(allocations == before);
    CHECK(done);
    CHECK(v.admitted);
    CHECK(result[0].remaining == 59);
}
