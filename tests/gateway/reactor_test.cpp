// The event loop: who comes first when many sockets are ready at once, timers, and calls from other threads.
#include "limiter/io/reactor.hpp"
#include "limiter/io/task.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <sys/eventfd.h>
#include <thread>
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
        s.adopt(fd);
        s.exhausted(); // nothing to read yet
        start(wait(s, std::move(act)));
        return fd;
    }
    reactor& loop() { return in_; }
    void close(std::size_t number) { sockets_[number].close(); }
    static void make_ready(int fd) { CHECK(::eventfd_write(fd, 1) == 0); }
    // Until every coroutine has gone on, or patience is over.
    void run(std::size_t all)
    {
        const auto end = std::chrono::steady_clock::now() + patience;
        while (done_ < all && std::chrono::steady_clock::now() < end)
            in_.turn(std::chrono::milliseconds{10});
        CHECK(done_ == all);
    }
    ~ready_sockets()
    {
        for (auto& s : sockets_)
            s.close();
        in_.stop();
        in_.run();
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

    reactor in_;
    std::deque<tcp_socket> sockets_;
    std::size_t done_ = 0;
};

} // namespace

TEST_CASE("reactor: what came before anybody waited is noticed when somebody does")
{
    reactor in;
    tcp_socket s(in);
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s.adopt(fd);
    s.exhausted(); // a read has come up short, and the kernel watches nothing yet
    CHECK(s.may_be_readable());
    ready_sockets::make_ready(fd);
    bool noticed = false;
    start([](tcp_socket& from, bool& done) -> task<void> {
        const auto got = co_await from.until_readable();
        done = !got.error;
    }(s, noticed));
    CHECK_FALSE(noticed); // not without asking the kernel
    in.turn(patience);
    CHECK(noticed);
}

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

namespace {

// Descriptors that are ready at once, each with a coroutine that is read for and then takes two steps. What happened is
// told by a letter and a number: r read, a before the first step, b after it, c after the second.
class in_step_sockets
{
public:
    explicit in_step_sockets(std::size_t count, std::size_t bytes_each = 1) : bytes_each_(bytes_each)
    {
        for (std::size_t i = 0; i < count; ++i) {
            auto& one = all_.emplace_back(*this, i);
            one.socket.adopt(::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
            one.socket.exhausted();
            start(take_steps(one));
        }
    }
    ~in_step_sockets()
    {
        for (auto& one : all_)
            one.socket.close();
        in_.stop();
        in_.run();
    }
    std::string run()
    {
        in_.turn(patience);
        return told_;
    }
    void close_when(std::string what, std::size_t number) { closing_ = {std::move(what), number}; }
    const std::vector<steady_time>& times() const { return times_; } // of what was told

private:
    struct one_socket final : read_ahead
    {
        one_socket(in_step_sockets& of, std::size_t i) : owner(of), number(i), socket(of.in_) {}
        std::size_t on_readable() override
        {
            owner.tell('r', number);
            return owner.bytes_each_;
        }
        in_step_sockets& owner;
        std::size_t number;
        tcp_socket socket;
    };
    void tell(char what, std::size_t number)
    {
        const auto now = what + std::to_string(number);
        told_ += (told_.empty() ? "" : " ") + now;
        times_.push_back(in_.now());
        if (now == closing_.first)
            all_[closing_.second].socket.close();
    }
    static task<void> take_steps(one_socket& mine)
    {
        const auto ready = co_await mine.socket.until_readable(&mine);
        if (ready.error)
            co_return;
        for (const char step : {'a', 'b', 'c'}) {
            mine.owner.tell(step, mine.number);
            co_await mine.owner.in_.in_step();
        }
    }

    reactor in_;
    std::deque<one_socket> all_;
    std::size_t bytes_each_;
    std::string told_;
    std::vector<steady_time> times_;
    std::pair<std::string, std::size_t> closing_;
};

} // namespace

TEST_CASE("reactor: who is ready together is read for first, and then takes each step together")
{
    CHECK(in_step_sockets(3).run() == "r0 r1 r2 a0 a1 a2 b0 b1 b2 c0 c1 c2");
    CHECK(in_step_sockets(1).run() == "r0 a0 b0 c0");
    reactor idle;
    CHECK(idle.in_step().await_ready()); // nobody to wait for
}

TEST_CASE("reactor: those who keep step read the time once a step, who is alone whenever it asks")
{
    in_step_sockets three(3);
    REQUIRE(three.run() == "r0 r1 r2 a0 a1 a2 b0 b1 b2 c0 c1 c2");
    for (std::size_t step = 3; step < 12; step += 3) {
        CHECK(three.times()[step] == three.times()[step + 1]);
        CHECK(three.times()[step] == three.times()[step + 2]);
        CHECK(three.times()[step] > three.times()[step - 1]);
    }
    in_step_sockets one(1);
    REQUIRE(one.run() == "r0 a0 b0 c0");
    for (std::size_t i = 1; i < 4; ++i)
        CHECK(one.times()[i] > one.times()[i - 1]);
}

TEST_CASE("reactor: nobody takes a step with more than a few others, or with many bytes read")
{
    const auto told = in_step_sockets(40).run();
    CHECK(told.starts_with("r0 r1 r2 r3 "));
    CHECK(told.find("r31 a0 ") != told.npos);
    CHECK(told.find("c31 r32 ") != told.npos);
    CHECK(told.ends_with("c38 c39"));
    CHECK(in_step_sockets(3, 40'000).run() == "r0 r1 a0 a1 b0 b1 c0 c1 r2 a2 b2 c2");
}

TEST_CASE("reactor: a socket that is closed after it was read for, and before its reader goes on, tells the reader so")
{
    in_step_sockets sockets(3);
    sockets.close_when("a0", 1);
    CHECK(sockets.run() == "r0 r1 r2 a0 a2 b0 b2 c0 c2");
}

namespace {

using namespace std::chrono_literals;

task<void> note_when(steady_timer& timer, std::vector<int>& order, int number)
{
    const auto woken = co_await until_expired(timer);
    order.push_back(woken.error ? -number : number);
}

} // namespace

TEST_CASE("reactor: timers end in the order of their moments, none before its own")
{
    reactor in;
    steady_timer late(in), early(in), past(in);
    const auto now = std::chrono::steady_clock::now();
    late.expires_at(now + 20ms);
    early.expires_at(now + 10ms);
    past.expires_at(now - 1h);
    std::vector<int> order;
    start(note_when(late, order, 3));
    start(note_when(early, order, 2));
    start(note_when(past, order, 1));
    in.stop(); // runs until nobody waits any more
    in.run();
    CHECK(order == std::vector<int>{1, 2, 3});
    CHECK(std::chrono::steady_clock::now() >= now + 20ms);
}

TEST_CASE("reactor: a timer that is cancelled, set anew or destroyed tells who waits, from the loop")
{
    reactor in;
    steady_timer cancelled(in), set_anew(in);
    auto destroyed = std::make_unique<steady_timer>(in);
    for (auto* each : {&cancelled, &set_anew, destroyed.get()})
        each->expires_after(1h);
    std::vector<int> order;
    start(note_when(cancelled, order, 1));
    start(note_when(set_anew, order, 2));
    start(note_when(*destroyed, order, 3));
    cancelled.cancel();
    set_anew.expires_after(1h);
    destroyed.reset();
    CHECK(order.empty()); // nobody goes on inside somebody else's step
    in.stop();
    in.run();
    CHECK(order == std::vector<int>{-1, -2, -3});
}

TEST_CASE("reactor: a timer that ends another one's wait in the same turn is safe")
{
    reactor in;
    steady_timer first(in), second(in);
    const auto past = std::chrono::steady_clock::now() - 1ms;
    first.expires_at(past);
    second.expires_at(past + 1us);
    std::vector<int> order;
    start([](steady_timer& mine, steady_timer& other, std::vector<int>& seen) -> task<void> {
        co_await until_expired(mine);
        other.cancel();
        seen.push_back(1);
    }(first, second, order));
    start(note_when(second, order, 2));
    in.stop();
    in.run();
    CHECK(order == std::vector<int>{1, -2});
}

TEST_CASE("reactor: calls from other threads come one by one, all of them, and before the sockets of their turn")
{
    ready_sockets sockets;
    int posted = 0, posted_before_client = 0;
    const int client = sockets.add(socket_turn::first, [&] { posted_before_client = posted; });
    constexpr int each = 1000;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < each; ++i)
                sockets.loop().post([&] { ++posted; }); // not atomic: the loop's thread alone calls
        });
    for (auto& thread : threads)
        thread.join();
    ready_sockets::make_ready(client);
    sockets.run(1);
    CHECK(posted_before_client == 4 * each);
}
