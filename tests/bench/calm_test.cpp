// Which moments of a run count as calm, told from looks at what was missing of the cores' time.
#include "bench/load/calm.hpp"
#include "bench/load/missing_time.hpp"

#include <unistd.h>

using namespace std::chrono_literals;

namespace {

const load::clock::time_point start{1000h};

// Looks at the usual distance; `missing` in microseconds.
std::vector<load::look> looks(const std::vector<int>& missing)
{
    std::vector<load::look> all;
    for (const auto us : missing)
        all.push_back({start + load::between_looks * static_cast<int>(all.size()), std::chrono::microseconds(us)});
    return all;
}

std::vector<int> taken(const std::vector<load::look>& seen)
{
    std::vector<int> all;
    for (const auto& each : load::find_stretches(seen))
        all.push_back(static_cast<int>(each.taken / 1us));
    return all;
}

std::vector<bool> calm(const std::vector<int>& missing)
{
    return load::find_calm(load::find_stretches(looks(missing)));
}

} // namespace

TEST_CASE("calm: what is missing at one look and turns up later was not taken, only not yet told")
{
    CHECK(taken(looks({0, 400, 0, 900, 300, 5})) == std::vector{0, 0, 5, 0, 0});
    CHECK(taken(looks({700, 0, 0})) == std::vector{0, 0}); // told late at the first look
}

TEST_CASE("calm: what never turns up was taken, in the stretch in which it went missing")
{
    CHECK(taken(looks({0, 0, 800, 800, 800})) == std::vector{0, 800, 0, 0});
    CHECK(taken(looks({0, 60, 800, 1000, 800})) == std::vector{60, 740, 0, 0});
    CHECK(taken(looks({-500, -500, -300})) == std::vector{0, 200}); // wherever counting began
}

TEST_CASE("calm: what was taken may have been at any time until the look at which least was missing")
{
    const auto all = load::find_stretches(looks({0, 500, 900, 100, 100}));
    REQUIRE(all.size() == 4);
    CHECK(all[0].taken == 100us);
    CHECK(all[0].told == start + 3 * load::between_looks);
    CHECK(all[3].told == start + 4 * load::between_looks);
    // So nothing is calm until then, nor until it is caught up with: 0.4 ms and a look.
    CHECK(calm({0, 500, 900, 100, 100, 100, 100}) == std::vector{false, false, false, false, false, true});
}

TEST_CASE("calm: nobody looked, or once: there is no stretch")
{
    CHECK(load::find_stretches({}).empty());
    CHECK(load::find_stretches(looks({5})).empty());
    CHECK(load::find_calm({}).empty());
}

TEST_CASE("calm: hardly anything taken is calm, a little more is not")
{
    CHECK(calm({0, 25, 50, 75, 100}) == std::vector{true, true, true, true});
    CHECK(calm({0, 26, 26, 26, 26}) == std::vector{false, false, false, true});
}

TEST_CASE("calm: neither is what comes right before a pause, nor what comes until it is caught up with")
{
    // 0.5 ms taken in the third stretch: requests of the second wait in it, and it takes 2 ms and a look to catch up.
    CHECK(calm({0, 0, 0, 500, 500, 500, 500, 500, 500, 500, 500}) ==
          std::vector{true, false, false, false, false, false, false, false, true, true});
    // A second pause meanwhile is added: 0.9 ms after the first, and 0.9 ms more.
    CHECK(calm({0, 100, 200, 200, 200, 200, 200, 200}) == std::vector{false, false, false, false, false, true, true});
}

TEST_CASE("calm: a request counts by the moment at which it was due, and the share tells how many did")
{
    load::calm_latencies all;
    for (const auto& each : looks({0, 0, 0, 1000, 1000}))
        all.look_at_cores(each.when, each.missing);
    CHECK(all.next_look() == start + 5 * load::between_looks);
    all.add(start, {1000ns, 1000ns});                                      // calm
    all.add(start + load::between_looks - 1ns, {3000ns, 3000ns});          // calm
    all.add(start + load::between_looks, {500'000ns, 500'000ns});          // right before the pause
    all.add(start + 2 * load::between_looks, {1'000'000ns, 1'000'000ns});  // in it
    all.add(start + 10 * load::between_looks, {1'000'000ns, 1'000'000ns}); // nobody looked any more
    const auto said = all.settle();
    CHECK(said.took.waited.total() == 2);
    CHECK(said.took.waited.largest() == 3000);
    CHECK(said.share == doctest::Approx(0.4));
}

TEST_CASE("missing time: a core whose process sleeps misses that time; one who ran misses none of it")
{
    load::missing_time missing(1, {::getpid()});
    const auto ran_before = load::read_clock(CLOCK_PROCESS_CPUTIME_ID), began = load::read_clock(CLOCK_MONOTONIC);
    const auto before = missing.read();
    std::this_thread::sleep_for(20ms); // what is measured
    const auto after = missing.read();
    const auto wall = load::read_clock(CLOCK_MONOTONIC) - began;
    const auto ran = load::read_clock(CLOCK_PROCESS_CPUTIME_ID) - ran_before;
    CHECK(after - before >= 20ms - ran);
    CHECK(after - before <= wall);
}

TEST_CASE("missing time: who had nothing to do and needed long for it adds that, less what is missing already")
{
    load::missing_time missing(0, {});
    const auto before = missing.read();
    missing.idled(load::missing_time::longer_than_a_tick);
    CHECK(missing.read() == before); // the kernel's tick takes no longer
    missing.idled(1h);
    const auto after = missing.read() - before;
    CHECK(after < 1h + 1ms); // clocks differ by nanoseconds
    CHECK(after > 59min);
    std::this_thread::sleep_for(5ms); // told: our own CPU time lacks it
    missing.idled(1ms);
    CHECK(missing.read() - before == after);
}

TEST_CASE("missing time: a process that is not there is an error")
{
    CHECK_THROWS_WITH(load::missing_time(1, {100'000'000}), "there is no process 100000000");
}
