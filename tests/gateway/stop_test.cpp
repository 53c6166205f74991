// Stopping at the worst moment: the worker's timer has just expired, its completion is queued after the call to stop
// and can no longer be cancelled. The event loop must still run out of work.
#include "gateway/log/log_writer.hpp"
#include "gateway/stores/store_health.hpp"
#include "gateway/worker.hpp"
#include "tests/gateway/support.hpp"

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace headgate;
using namespace std::chrono_literals;

TEST_CASE("a worker that is stopped when its timer has expired stops")
{
    gateway_clock clock;
    log_writer log;
    store_health health;
    worker w(0, clock, std::make_shared<compiled_config>(), log, health);
    std::atomic<bool> ended{false};
    boost::asio::post(w.loop().context(), [&] {
        std::this_thread::sleep_for(150ms); // the fault itself: the loop is late by more than a tick
        w.stop();
    });
    w.start_thread();
    std::thread joiner([&] {
        w.join();
        ended = true;
    });
    CHECK(tests::eventually([&] { return ended.load(); }));
    joiner.join();
}

TEST_CASE("a worker that is drained while clients wait to be accepted closes them")
{
    const auto descriptors = tests::open_descriptors();
    {
        std::vector<tests::raw_connection> waiting(10);
        tests::running_gateway gateway("workers: 1\nlisteners: [ { address: 127.0.0.1:0 } ]\n"
                                       "upstreams: { up: { echo: true } }\nroutes: [ { name: all, upstream: up } ]\n",
                                       [&](tests::running_gateway& listening) {
                                           for (auto& each : waiting) {
                                               each = listening.connect();
                                               each.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                                           }
                                           listening.app().drain(); // the first event that the worker handles
                                       });
        for (auto& each : waiting) {
            each.read_all();
            CHECK((each.was_closed() || each.was_reset()));
        }
    }
    CHECK(tests::eventually([&] { return tests::open_descriptors() <= descriptors; }));
}
