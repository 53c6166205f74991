// What of a request's time is charged to the proxy, and what is not.
#include "bench/load/latency.hpp"

using namespace std::chrono_literals;

namespace {

// All in µs after some moment.
struct moments
{
    int due = 0, freed = 0, sent = 0, came = 0, read = 0, origin_took = 0;
};

load::latency latency_of(const moments& of)
{
    const auto at = [](int us) { return load::clock::time_point{1h} + std::chrono::microseconds(us); };
    return load::latency_of({.due = at(of.due),
                             .freed = at(of.freed),
                             .sent = at(of.sent),
                             .came = at(of.came),
                             .read = at(of.read),
                             .origin_took = std::chrono::microseconds(of.origin_took)});
}

} // namespace

TEST_CASE("latency: a request that leaves when it is due is charged until its answer comes")
{
    CHECK(latency_of({.due = 100, .sent = 100, .came = 150}).waited == 50us);
}

TEST_CASE("latency: what the load is late, before it sends and before it reads, is not the proxy's")
{
    const auto late = latency_of({.due = 100, .sent = 130, .came = 180, .read = 200});
    CHECK(late.waited == 50us);
    CHECK(late.until_read == 100us);
    CHECK(latency_of({.due = 100, .freed = 100, .sent = 130, .came = 180}).waited == 50us);
}

TEST_CASE("latency: what a request waits until the proxy has answered what came before it on its connection is")
{
    CHECK(latency_of({.due = 100, .freed = 400, .sent = 400, .came = 450}).waited == 350us);
    // Of the 40 that the load took to read that answer and to send, nothing.
    CHECK(latency_of({.due = 100, .freed = 400, .sent = 440, .came = 490}).waited == 350us);
}

TEST_CASE("latency: what the origin took is not the proxy's")
{
    CHECK(latency_of({.due = 100, .sent = 100, .came = 180, .origin_took = 60}).waited == 20us);
    CHECK(latency_of({.due = 100, .freed = 400, .sent = 440, .came = 520, .origin_took = 60}).waited == 320us);
}

TEST_CASE("latency: clocks that disagree by a little make nothing of it, never a huge number")
{
    load::latencies all;
    all.add(latency_of({.due = 100, .sent = 100, .came = 99, .read = 99}));
    all.add(latency_of({.due = 100, .sent = 100, .came = 150, .read = 150, .origin_took = 51}));
    CHECK(all.waited.largest() == 0);
    CHECK(all.until_read.largest() == 50'000);
    CHECK(all.until_read.total() == 2);
}
