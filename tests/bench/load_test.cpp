// The load generator against a server that answers at once, but pauses one time.
#include "bench/load/client.hpp"
#include "bench/load/origin.hpp"

#include <atomic>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

// One thread that answers 200 to every request, if its head arrives in one piece. After `before_pause` answers it does
// nothing for `pause`.
class pausing_server
{
public:
    pausing_server(std::size_t before_pause, std::chrono::milliseconds pause)
        : before_pause_(before_pause), pause_(pause)
    {
        listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(listener_, 64) == 0);
        REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~pausing_server()
    {
        stop_ = true;
        thread_.join();
        ::close(listener_);
    }
    std::uint16_t port() const { return port_; }
    const std::string& last_request() const { return last_; } // once the load has ended

private:
    void serve()
    {
        static constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        std::vector<pollfd> watched{{listener_, POLLIN, 0}};
        while (!stop_) {
            ::poll(watched.data(), watched.size(), 20);
            for (std::size_t i = watched.size(); i-- > 1;) {
                char bytes[8192];
                if (!watched[i].revents)
                    continue;
                const auto got = ::recv(watched[i].fd, bytes, sizeof bytes, 0);
                if (got <= 0) {
                    ::close(watched[i].fd);
                    watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
                    continue;
                }
                last_.assign(bytes, static_cast<std::size_t>(got));
                if (answered_++ == before_pause_)
                    std::this_thread::sleep_for(pause_); // the pause is what is tested
                ::send(watched[i].fd, answer.data(), answer.size(), MSG_NOSIGNAL);
            }
            if (watched[0].revents)
                watched.push_back({::accept(listener_, nullptr, nullptr), POLLIN, 0});
        }
        for (std::size_t i = 1; i < watched.size(); ++i)
            ::close(watched[i].fd);
    }

    std::size_t before_pause_;
    std::chrono::milliseconds pause_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::size_t answered_ = 0;
    std::string last_;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

load::options at(const pausing_server& server)
{
    load::options chosen;
    chosen.port = server.port();
    chosen.connections = 4;
    chosen.warm = 0;
    return chosen;
}

} // namespace

TEST_CASE("load, open loop: a pause counts for every request that was due in it, not once per connection")
{
    pausing_server server(200, 400ms);
    auto chosen = at(server);
    chosen.rate = 1000;
    chosen.seconds = 1;
    load::client client(chosen);
    REQUIRE(client.connect_all());
    const auto said = client.run();
    CHECK(said.errors == 0);
    CHECK(said.unfinished == 0);
    CHECK(said.latency.total() == 1000);
    // 400 of the 1,000 were due while nothing was answered; half of those waited 200 ms or more.
    CHECK(said.latency.percentile(0.85) >= 150'000'000);
    CHECK(said.latency.largest() >= 380'000'000);
}

TEST_CASE("load, closed loop: latency counts from sending, so a pause counts once per connection")
{
    pausing_server server(200, 400ms);
    auto chosen = at(server);
    chosen.seconds = 1;
    load::client client(chosen);
    REQUIRE(client.connect_all());
    const auto said = client.run();
    CHECK(said.latency.total() == said.requests);
    CHECK(said.latency.largest() >= 380'000'000);
    CHECK(said.latency.percentile(0.5) < 100'000'000);
}

TEST_CASE("load, closed loop: counts what is answered, each with its status")
{
    pausing_server server(std::size_t(-1), 0ms);
    auto chosen = at(server);
    chosen.seconds = 0.2;
    load::client client(chosen);
    REQUIRE(client.connect_all());
    const auto said = client.run();
    CHECK(said.errors == 0);
    REQUIRE(said.requests > 0);
    REQUIRE(said.statuses.size() == 1);
    CHECK(said.statuses.at(200) == said.requests);
    CHECK(said.seconds >= 0.2);
}

TEST_CASE("load: a request has the path, the fields and the key that were asked for")
{
    pausing_server server(std::size_t(-1), 0ms);
    auto chosen = at(server);
    chosen.most = 50;
    chosen.connections = 1;
    chosen.headers = 3;
    chosen.paths = 1;
    chosen.keys = {load::key_choice::law::sequence, 7, 0};
    {
        load::client client(chosen);
        REQUIRE(client.connect_all());
        CHECK(client.run().requests == 50);
    }
    const auto& request = server.last_request();
    CAPTURE(request);
    CHECK(request.starts_with("GET /r/0/small HTTP/1.1\r\n"));
    CHECK(request.find("\r\nX-Header-2: ") != request.npos);
    CHECK(request.find("\r\nX-Header-3: ") == request.npos);
    CHECK(request.find("\r\nX-API-Key: key-") != request.npos);
}

TEST_CASE("load: when nothing listens, connecting fails at once instead of after a minute")
{
    std::uint16_t port = 0;
    {
        const pausing_server gone(0, 0ms);
        port = gone.port();
    }
    load::options chosen;
    chosen.port = port;
    chosen.connections = 4;
    load::client client(chosen);
    CHECK_FALSE(client.connect_all());
}

TEST_CASE("load in the origin's thread: both are served all the time")
{
    load::origin origin(0);
    load::options chosen;
    chosen.port = origin.port();
    chosen.connections = 4;
    chosen.warm = 0.05;
    chosen.seconds = 0.2;
    std::uint64_t calls = 0;
    const auto serve = [&] {
        ++calls;
        return origin.serve_ready();
    };
    SUBCASE("at a constant rate, every request is answered")
    {
        chosen.rate = 2000;
        load::client client(chosen, serve);
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.errors == 0);
        CHECK(said.unfinished == 0);
        CHECK(said.latency.total() == 400);
        CHECK(calls > 2 * said.latency.total()); // also while no request is due
    }
    SUBCASE("in the closed loop, with bodies in both directions")
    {
        chosen.path = "/large";
        chosen.method = "POST";
        chosen.body = 100'000;
        load::client client(chosen, serve);
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.errors == 0);
        REQUIRE(said.requests > 0);
        CHECK(said.latency.total() == said.requests);
        CHECK(said.bytes >= (said.requests - 4) * 65536); // some began before, some end after it
        CHECK(said.statuses.at(200) == said.requests);
    }
}
