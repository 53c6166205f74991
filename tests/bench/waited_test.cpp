// What of a request's time is charged to the proxy.
#include "bench/load/waited.hpp"

using namespace std::chrono_literals;

namespace {

// All in µs after some moment.
std::chrono::nanoseconds waited(int due, int freed, int sent, int came, int origin_took)
{
    const load::clock::time_point zero{1h};
    const auto at = [&](int us) { return zero + std::chrono::microseconds(us); };
    return load::waited({.due = at(due),
                         .freed = at(freed),
                         .sent = at(sent),
                         .came = at(came),
                         .origin_took = std::chrono::microseconds(origin_took)});
}

} // namespace

TEST_CASE("latency: a request that leaves when it is due is charged until its answer comes")
{
    CHECK(waited(100, 0, 100, 150, 0) == 50us);
}

TEST_CASE("latency: what the load is late is not the proxy's")
{
    CHECK(waited(100, 0, 130, 180, 0) == 50us);
    CHECK(waited(100, 100, 130, 180, 0) == 50us);
}

TEST_CASE("latency: what a request waits until the proxy has answered what came before it on its connection is")
{
    CHECK(waited(100, 400, 400, 450, 0) == 350us);
    // Of the 40 after that the load took to read that answer and to send, nothing.
    CHECK(waited(100, 400, 440, 490, 0) == 350us);
}

TEST_CASE("latency: what the origin took is not the proxy's")
{
    CHECK(waited(100, 0, 100, 180, 60) == 20us);
    CHECK(waited(100, 400, 440, 520, 60) == 320us);
}

TEST_CASE("latency: clocks that disagree by a little make it nothing, never a huge number")
{
    CHECK(waited(100, 0, 100, 99, 0) == 0us);
    CHECK(waited(100, 0, 100, 150, 51) == 0us);
}
