// bench_awake: keeps a core from halting while the proxy on it sleeps, and counts in FILE for how long the core stood
// still: time went by, this process was not switched off, and yet it did not run. It runs only when nobody else wants
// to, so it sees a part of that. usage: bench_awake FILE
#include "bench/load/missing_time.hpp"

#include <cstdio>
#include <exception>
#include <sched.h>

namespace {

using namespace std::chrono_literals;

constexpr auto switched_off = 3us; // or more; a look at the clock takes a hundredth of that

[[noreturn]] void spin(std::atomic<std::int64_t>& stood_still)
{
    using load::read_clock;
    auto ran_before = read_clock(CLOCK_THREAD_CPUTIME_ID);
    auto checked = read_clock(CLOCK_MONOTONIC), last = checked;
    for (;;) {
        const auto now = read_clock(CLOCK_MONOTONIC);
        if (now - last > switched_off) {
            // Its kernel charges us for a pause that it does not know of, and for nothing while another process runs.
            const auto ran = read_clock(CLOCK_THREAD_CPUTIME_ID);
            const auto meanwhile = ran - ran_before - (last - checked);
            if (meanwhile > load::longer_than_a_tick)
                stood_still.fetch_add(meanwhile.count(), std::memory_order_relaxed);
            ran_before = ran;
            checked = last = read_clock(CLOCK_MONOTONIC);
        } else {
            last = now;
        }
    }
}

} // namespace

int main(int count, char** arguments)
try {
    if (count != 2)
        return 2;
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_IDLE, &none);
    spin(*load::share_sum(arguments[1]));
} catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_awake: %s\n", problem.what());
    return 1;
}
