// What a request waited for the proxy, and for nobody else. Pure.
//
// Load and origin share a thread, and mostly a core, so a request that is due has to wait until the load gets round to
// it, what the proxy forwards until the origin does, and an answer until it is read. That is the same for every proxy,
// and with two cores it is more than most of them take. It does not count. What counts is the time until its connection
// was free, which is the proxy's doing (so a proxy that stops for a while is charged for every request that it kept
// waiting, not for one a connection), and that from its sending until its answer came, less what the origin took.
#pragma once

#include <algorithm>
#include <chrono>

namespace load {

using clock = std::chrono::steady_clock;

struct request_times
{
    clock::time_point due;
    clock::time_point freed; // when the answer before it on this connection came
    clock::time_point sent;
    clock::time_point came; // its answer
    std::chrono::nanoseconds origin_took{0};
};

inline std::chrono::nanoseconds waited(const request_times& of)
{
    const auto for_connection = std::max(clock::duration(0), of.freed - of.due);
    return std::max<std::chrono::nanoseconds>(clock::duration(0),
                                              for_connection + (of.came - of.sent) - of.origin_took);
}

} // namespace load
