// The event loop of a worker: the order of clients and everything else, and the end of a turn.
#include "limiter/io/event.hpp"
#include "limiter/io/event_loop.hpp"

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include <vector>

using namespace headgate;
using namespace std::chrono_literals;

namespace {

// Remembers when the turn ended among other things.
class turn_marker final : public turn_end
{
public:
    explicit turn_marker(std::vector<int>& order) : order_(order) {}

private:
    void on_turn_end() override { order_.push_back(-1); }
    std::vector<int>& order_;
};

} // namespace

TEST_CASE("event loop: clients wait behind everything else that is ready, in their order")
{
    event_loop loop;
    std::vector<int> order;
    const auto post_client = [&](int i) {
        asio::post(asio::bind_executor(loop.clients(), [&order, i] { order.push_back(i); }));
    };
    asio::post(loop.context(), [&] { post_client(1); });
    asio::post(loop.context(), [&] { order.push_back(0); });
    asio::post(loop.context(), [&] {
        post_client(2);
        post_client(3);
    });
    loop.run();
    CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("event loop: a turn has a bounded number of clients and one end")
{
    event_loop loop;
    std::vector<int> order;
    turn_marker marker(order);
    for (int i = 0; i < 40; ++i) {
        asio::post(asio::bind_executor(loop.clients(), [&, i] {
            order.push_back(i);
            loop.at_turn_end(marker);
            loop.at_turn_end(marker);
        }));
    }
    loop.run();
    REQUIRE(order.size() == 42);
    CHECK(order[32] == -1);
    CHECK(order[41] == -1);
    CHECK(order[40] == 39);
}

TEST_CASE("event: a coroutine that waits goes on inside notify(), or from the loop")
{
    event_loop loop;
    event happened;
    int resumed = 0;
    const auto wait_twice = [&]() -> task<> {
        co_await happened.wait();
        ++resumed;
        co_await happened.wait();
        ++resumed;
    };
    spawn(loop.get_executor(), wait_twice());
    asio::post(loop.context(), [&] {
        CHECK(happened.is_awaited());
        happened.notify();
        CHECK(resumed == 1);
        happened.notify_later(loop.get_executor());
        CHECK(resumed == 1);
    });
    loop.run();
    CHECK(resumed == 2);
}
