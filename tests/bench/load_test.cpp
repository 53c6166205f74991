// The load generator against a server that answers at once, but once stops for a while.
#include "bench/load/client.hpp"
#include "bench/load/origin.hpp"

#include <atomic>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

// One thread that answers 200 to whatever it reads, as long as that is one head in one piece. When it has answered
// `before_pause` requests it answers nobody for `pause`.
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

TEST_CASE("load, open loop: a pause is charged to every request that was due in it, not to one a connection")
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
    CHECK(said.took.waited.total() == 1000);
    // 400 of the 1,000 were due while nothing was answered; half of those waited 200 ms or more.
    CHECK(said.took.waited.percentile(0.85) >= 150'000'000);
    CHECK(said.took.waited.largest() >= 380'000'000);
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

TEST_CASE("load: nobody listens: it says so, and does not wait for a minute")
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

TEST_CASE("load beside the origin, in one thread: every request is answered, and both are looked after all the time")
{
    load::origin serving(0);
    load::options chosen;
    chosen.port = serving.port();
    chosen.connections = 4;
    chosen.warm = 0.05;
    chosen.seconds = 0.2;
    std::uint64_t looks = 0;
    const auto serve = [&] {
        ++looks;
        return serving.serve_ready() > 0;
    };
    SUBCASE("at a constant rate")
    {
        chosen.rate = 2000;
        load::client client(chosen, serve);
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.errors == 0);
        CHECK(said.unfinished == 0);
        CHECK(said.took.waited.total() == 400);
        CHECK(looks > 2 * said.took.waited.total()); // also while nothing is due
    }
    SUBCASE("where its core is to be its own: what is due while the core is not, and until that is caught up with, is "
            "not calm")
    {
        chosen.rate = 2000;
        chosen.cores = 1;
        chosen.filling = {::getpid()};
        auto pause_at = load::clock::time_point::max();
        load::client client(chosen, [&] {
            if (load::clock::now() > pause_at) {
                pause_at = load::clock::time_point::max();
                std::this_thread::sleep_for(20ms); // somebody else has the core
            }
            return serve();
        });
        REQUIRE(client.connect_all());
        pause_at = load::clock::now() + 100ms;
        const auto said = client.run();
        CHECK(said.took.waited.total() == 400);
        CHECK(said.lateness.largest() >= 19'000'000);
        REQUIRE(said.calm);
        CHECK(said.calm->took.waited.total() <= 300); // 20 ms and four times that are half of the time
        CHECK(said.calm->share == static_cast<double>(said.calm->took.waited.total()) / 400);
    }
    // 2 ms that somebody else took are in what the load saw, and not in what the proxy is charged for. Half of all
    // requests are asked about, so that a machine that pauses now and then does not decide.
    const auto check_not_charged = [](load::client& client) {
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.took.waited.total() == 40);
        CHECK(said.took.waited.percentile(0.5) < 1'000'000);
        CHECK(said.took.until_read.percentile(0.5) >= 2'000'000);
        CHECK(said.unstamped < 20);
    };
    SUBCASE("answers that lie unread are not slow")
    {
        chosen.rate = 200;
        load::client client(chosen, [&] {
            const bool served = serve();
            if (served)
                std::this_thread::sleep_for(2ms); // the answer has come meanwhile, and requests are due
            return served;
        });
        check_not_charged(client);
    }
    SUBCASE("what the origin takes is not the proxy's")
    {
        chosen.rate = 200;
        load::client client(chosen, [&] {
            pollfd asked{serving.descriptor(), POLLIN, 0};
            if (::poll(&asked, 1, 0) > 0)
                std::this_thread::sleep_for(2ms); // the origin has other things to do
            return serve();
        });
        check_not_charged(client);
    }
    SUBCASE("where a core that is to be filled is idle: no moment is calm")
    {
        chosen.rate = 2000;
        chosen.cores = 2;
        chosen.filling = {::getpid()};
        load::client client(chosen, serve);
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.took.waited.total() == 400);
        REQUIRE(said.calm);
        CHECK(said.calm->took.waited.total() == 0);
    }
    SUBCASE("as fast as it goes, with bodies both ways")
    {
        chosen.path = "/large";
        chosen.method = "POST";
        chosen.body = 100'000;
        load::client client(chosen, serve);
        REQUIRE(client.connect_all());
        const auto said = client.run();
        CHECK(said.errors == 0);
        REQUIRE(said.requests > 0);
        CHECK(said.bytes >= (said.requests - 4) * 65536); // some began before, some end after it
        CHECK(said.statuses.at(200) == said.requests);
    }
}
