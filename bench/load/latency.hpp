// Two answers to how long a request took. Pure.
//
// Load and origin share a thread, and mostly a core, so a request that is due has to wait until the load gets round to
// it, what the proxy forwards until the origin does, and an answer until it is read. With two cores that is more than
// most proxies take. `until_read` has it all. `waited` has what the proxy is waited for: until its connection was free
// (so a proxy that stops for a while is charged for every request that it kept waiting, not for one a connection), and
// from its sending until its answer came, less what the origin took before it began to answer. Where connections run
// out, what load and origin took of the requests before it on its connection is in it all the same; and where an answer
// is longer than what a socket holds, so is how fast they send and read.
#pragma once

#include "bench/load/histogram.hpp"
#include "bench/load/read_clock.hpp"

#include <algorithm>
#include <cstdint>

namespace load {

struct request_times
{
    clock::time_point due;
    clock::time_point freed; // when the answer before it on this connection came
    clock::time_point sent;
    clock::time_point came; // its answer
    clock::time_point read;
    std::chrono::nanoseconds origin_took{0};
};

struct latency
{
    std::chrono::nanoseconds waited, until_read;
};

inline latency latency_of(const request_times& of)
{
    const auto for_connection = std::max(clock::duration(0), of.freed - of.due);
    return {for_connection + (of.came - of.sent) - of.origin_took, of.read - of.due};
}

struct latencies
{
    histogram waited, until_read;

    // Clocks that disagree by a little make nothing of it, never a huge number.
    void add(const latency& one)
    {
        const auto count = [](auto time) {
            return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
        };
        waited.add(count(one.waited));
        until_read.add(count(one.until_read));
    }
};

} // namespace load
