// Who comes first when many sockets are ready at once.
#include "limiter/io/reactor.hpp"
#include "limiter/io/task.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <sys/eventfd.h>
#include <vector>

using namespace headgate;

namespace {

constexpr std::chrono::seconds patience{30}; // only a failure waits for it

// Descriptors that become readable when told to, each with a coroutine that waits for it.
class ready_sockets
{
public:
    int add(socket_turn when, std::function<void()> act)
    {
        const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        auto& s = sockets_.emplace_back(in_, when);
        REQUIRE(s.adopt(fd));
        s.exhausted(); // nothing to read yet
        start(wait(s, std::move(act)));
        return fd;
    }
    void close(std::size_t number) { sockets_[number].close(); }
    static void make_ready(int fd) { CHECK(::eventfd_write(fd, 1) == 0); }
    // Until every coroutine has gone on, or patience is over.
    void run(std::size_t all)
    {
        const auto end = std::chrono::steady_clock::now() + patience;
        while (done_ < all && std::chrono::steady_clock::now() < end)
            io_.run_one_for(std::chrono::milliseconds{10});
        CHECK(done_ == all);
    }
    ~ready_sockets()
    {
        for (auto& s : sockets_)
            s.close();
        in_.stop();
        io_.run_for(patience);
    }

private:
    task<void> wait(tcp_socket& s, std::function<void()> act)
    {
        const auto got = co_await s.until_readable();
        if (got.error)
            co_return;
        ++done_;
        act();
    }

    asio::io_context io_;
    reactor in_{io_};
    std::deque<tcp_socket> sockets_;
    std::size_t done_ = 0;
};

} // namespace

TEST_CASE("reactor: upstreams come before clients, however long the clients have been ready")
{
    ready_sockets sockets;
    std::vector<int> order;
    const int client = sockets.add(socket_turn::after_others, [&] { order.push_back(1); });
    const int other = sockets.add(socket_turn::after_others, [&] { order.push_back(2); });
    const int upstream = sockets.add(socket_turn::first, [&] { order.push_back(0); });
    ready_sockets::make_ready(client);
    ready_sockets::make_ready(other);
    ready_sockets::make_ready(upstream);
    sockets.run(3);
    CHECK(order == std::vector<int>{0, 1, 2}); // and clients in the order in which they became ready
}

TEST_CASE("reactor: a thousand clients that are ready at once all get their turn")
{
    ready_sockets sockets;
    constexpr std::size_t all = 1000;
    std::vector<int> descriptors;
    for (std::size_t i = 0; i < all; ++i)
        descriptors.push_back(sockets.add(socket_turn::after_others, [] {}));
    for (const int fd : descriptors)
        ready_sockets::make_ready(fd);
    sockets.run(all);
}

TEST_CASE("reactor: a client that is closed while it waits for its turn gets none")
{
    ready_sockets sockets;
    bool second = false;
    const int first_fd = sockets.add(socket_turn::after_others, [&] { sockets.close(1); });
    const int second_fd = sockets.add(socket_turn::after_others, [&] { second = true; });
    const int third_fd = sockets.add(socket_turn::after_others, [] {});
    for (const int fd : {first_fd, second_fd, third_fd})
        ready_sockets::make_ready(fd);
    sockets.run(2);
    CHECK_FALSE(second);
}
