// Clients and upstreams that are slow, vanish or do not read: hardening O2, O3, O5 and the fault catalogue. Every test
// ends with as many descriptors and open sessions as it began with.
#include "gateway/http/message.hpp"
#include "tests/admin/support.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fstream>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace headgate::tests;
using namespace std::chrono_literals;

namespace {

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
// Idle connections are no leak, but would be counted as one.
const std::string short_pool = "    pool: { idle_timeout: 10ms }\n";
const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::size_t resident_bytes()
{
    std::ifstream from("/proc/self/statm");
    std::size_t size = 0, resident = 0;
    from >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Waits until the gateway has released everything that the fault used.
class leak_check
{
public:
    leak_check() : descriptors_(open_now()) {}
    void expect_nothing_left() const
    {
        CHECK(eventually([&] { return open_now() <= descriptors_; }));
        CHECK(open_now() <= descriptors_);
    }

private:
    static std::size_t open_now() { return open_descriptors() - open_pipe_ends(); }
    std::size_t descriptors_;
};

} // namespace

TEST_CASE("faults: O5, a head that takes too long is 408, one byte at a time or in silence")
{
    recorder up;
    running_gateway gateway(
        running_gateway::in_front_of(up.server(), "", "    timeouts: { head: 100ms }\n", short_pool));
    const leak_check leaks;
    SUBCASE("silence after a part of the head")
    {
        for (const std::string part :
             {"G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"}) {
            CAPTURE(part);
            auto client = gateway.connect();
            client.send(part);
            const auto result = client.read_all();
            CHECK(status_of(result) == 408);
            CHECK(client.was_closed());
        }
    }
    SUBCASE("a byte from time to time, which must not restart the timeout")
    {
        auto client = gateway.connect();
        std::atomic<bool> over{false};
        std::thread slow([&] {
            client.send("GET / HTTP/1.1\r\n");
            while (!over) {
                client.send("X");
                std::this_thread::sleep_for(5ms); // the fault itself: a client this slow
            }
        });
        const auto began = std::chrono::steady_clock::now();
        const auto result = client.read_all();
        const auto took = std::chrono::steady_clock::now() - began;
        over = true;
        slow.join();
        CHECK(status_of(result) == 408);
        CHECK(took < 1s);
    }
    SUBCASE("an empty line is no request: closed without an answer")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok\r\n"); // an extra empty line, as some
                                                                                      // clients send it
        CHECK(status_of(client.read_response()) == 200);
        CHECK(client.read_all() == "");
        CHECK(client.was_closed());
    }
    SUBCASE("the second request of a connection has its own timeout")
    {
        auto client = gateway.connect();
        client.send(get);
        CHECK(status_of(client.read_response()) == 200);
        client.send("GET / HT");
        CHECK(status_of(client.read_all()) == 408);
    }
    leaks.expect_nothing_left();
}

TEST_CASE("faults: O5, a body that stalls is 408 and the upstream's request is cut")
{
    recorder up;
    running_gateway gateway(
        running_gateway::in_front_of(up.server(), "", "    timeouts: { body: 100ms }\n", short_pool));
    const leak_check leaks;
    for (const std::string request : {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
                                      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"}) {
        auto client = gateway.connect();
        client.send(request);
        CHECK(status_of(client.read_all()) == 408);
        CHECK(client.was_closed());
    }
    up.wait_until_closed();
    CHECK(up.requests().empty());
    leaks.expect_nothing_left();
}

TEST_CASE("faults: O5, a body that comes byte by byte is 408 although each byte is in time")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        for (auto bytes = client.read_some(); !bytes.empty(); bytes = client.read_some())
            self.record(bytes);
    });
    const leak_check leaks;
    {
        running_gateway gateway(
            running_gateway::in_front_of(up, "", "    timeouts: { body: 100ms, body_rate: 1MiB }\n"));
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        up.wait_for_received(1);
        std::atomic<bool> over{false};
        std::thread slow([&] {
            bool arrived = true;
            for (auto seen = up.received().size(); arrived && !over; ++seen) {
                client.send("x");
                arrived = eventually([&] { return over || up.received().size() > seen; });
            }
        });
        const auto result = client.read_response();
        over = true;
        slow.join();
        CHECK(status_of(result) == 408);
        CHECK(result.find("\"code\":\"body_timeout\"") != std::string::npos);
        up.wait_for_ended(1);
    }
    leaks.expect_nothing_left();
}

TEST_CASE("faults: O5, how slow a body may be")
{
    using headgate::http::is_too_slow;
    CHECK_FALSE(is_too_slow(60s, 0, 60s, 256));
    CHECK(is_too_slow(60s + 1us, 0, 60s, 256));
    CHECK_FALSE(is_too_slow(61s, 256, 60s, 256));
    CHECK(is_too_slow(61s + 1us, 256, 60s, 256));
    CHECK(is_too_slow(61s, 255, 60s, 256));
    CHECK_FALSE(is_too_slow(3600s, 10'000'000, 60s, 256));
    CHECK_FALSE(is_too_slow(24h, 0, 60s, 0)); // no minimum rate
    CHECK_FALSE(is_too_slow(24h, ~std::uint64_t{0}, 10ms, 1 << 20));
}

TEST_CASE("faults: O5, an idle connection is closed without an answer")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), "", "    timeouts: { idle: 100ms }\n"));
    auto client = gateway.connect();
    client.send(get);
    CHECK(status_of(client.read_response()) == 200);
    CHECK(client.read_all() == "");
    CHECK(client.was_closed());
}

TEST_CASE("faults: a client that has not sent a byte is idle, not late with its head")
{
    recorder up;
    SUBCASE("the idle timeout applies")
    {
        running_gateway gateway(
            running_gateway::in_front_of(up.server(), "", "    timeouts: { idle: 100ms, head: 1h }\n"));
        auto silent = gateway.connect();
        CHECK(silent.read_all() == "");
        CHECK(silent.was_closed());
    }
    SUBCASE("the head timeout does not")
    {
        running_gateway gateway(
            running_gateway::in_front_of(up.server(), "", "    timeouts: { idle: 1h, head: 10ms }\n"));
        const auto before = open_descriptors();
        auto silent = gateway.connect();
        REQUIRE(eventually([&] { return open_descriptors() == before + 2; })); // the client's, and the accepted one
        auto other = gateway.connect(); // answered after more than a tick: deadlines of 10 ms have been checked
        for (const auto end = std::chrono::steady_clock::now() + 300ms; std::chrono::steady_clock::now() < end;) {
            other.send(get);
            REQUIRE(status_of(other.read_response()) == 200);
        }
        silent.send(get);
        CHECK(status_of(silent.read_response()) == 200);
    }
    SUBCASE("a drain closes it")
    {
        running_gateway gateway(
            running_gateway::in_front_of(up.server(), "", "    timeouts: { idle: 1h, head: 1h }\n"));
        const auto before = open_descriptors();
        auto silent = gateway.connect();
        REQUIRE(eventually([&] { return open_descriptors() == before + 2; }));
        gateway.app().drain();
        CHECK(silent.read_all() == "");
        CHECK(silent.was_closed());
    }
}

TEST_CASE("faults: no byte is lost when a client's buffers are released between requests")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto waiting = gateway.connect();
    waiting.send("\r"); // an empty line may come before a request
    auto idle = gateway.connect();
    for (int i = 0; i < 3; ++i) {
        idle.send(get);
        CHECK(status_of(idle.read_response()) == 200);
    }
    waiting.send("\n" + get);
    CHECK(status_of(waiting.read_response()) == 200);
}

TEST_CASE("faults: O3, out of descriptors new clients are closed or wait, others are served, and it recovers")
{
    recorder up;
    const captured_log log;
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto known = gateway.connect();
    known.send(get);
    CHECK(status_of(known.read_response()) == 200);
    std::vector<file_descriptor> late; // created while descriptors are left
    for (int i = 0; i < 3; ++i)
        late.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    rlimit none = usual;
    none.rlim_cur = static_cast<rlim_t>(file_descriptor(::dup(0)).get()); // the lowest free one
    ::setrlimit(RLIMIT_NOFILE, &none);

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(gateway.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::vector<raw_connection> clients;
    for (auto& fd : late) {
        CHECK(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        clients.emplace_back(std::move(fd)).send(get);
    }
    CHECK(clients.front().read_all() == "");
    CHECK(clients.front().was_closed());
    known.send(get);
    CHECK(status_of(known.read_response()) == 200);

    ::setrlimit(RLIMIT_NOFILE, &usual);
    CHECK(status_of(gateway.ask(get)) == 200);
    // Three clients were closed, or waited for several pauses: one line, with the actual port.
    CHECK(count(log.text(), "127.0.0.1:" + std::to_string(gateway.port()) + ": out of file descriptors") == 1);
    CHECK(count(log.text(), "out of file descriptors") == 1);
}

TEST_CASE("faults: many clients that wait to be accepted do not delay a client of another listener")
{
    std::vector<raw_connection> many(100);
    raw_connection other;
    running_gateway gateway("workers: 1\nlisteners: [ { address: 127.0.0.1:0 }, { address: 127.0.0.1:0 } ]\n"
                            "stores: { local: { type: memory } }\nupstreams: { up: { echo: true } }\n"
                            "chains: { all: { store: local, rules: [ { name: first, key: [route], limit: 10/day, "
                            "algorithm: fixed_window, align: first } ] } }\n"
                            "routes: [ { name: all, upstream: up, chains: [ all ] } ]\n",
                            [&](running_gateway& listening) {
                                for (auto& each : many) {
                                    each = listening.connect();
                                    each.send(get);
                                }
                                other = raw_connection::to(listening.ports()[1]);
                                other.send(get);
                                CHECK(eventually([&] { return other.has_arrived(); }));
                            });
    // The limit shows the order: the first ten are admitted.
    CHECK(status_of(other.read_response()) == 200);
    std::size_t passed = 0;
    for (auto& each : many)
        passed += status_of(each.read_response()) == 200;
    CHECK(passed == 9);
}

TEST_CASE("faults: O5, a client that does not read is closed, and its upstream connection with it")
{
    std::atomic<bool> cut{false};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        const std::string piece(1'000'000, 'x');
        for (int i = 0; i < 100; ++i)
            client.send(piece);
        cut = client.read_all().empty();
    });
    running_gateway gateway(running_gateway::in_front_of(up, "", "    timeouts: { write: 100ms }\n"));
    const leak_check leaks;
    auto client = gateway.connect();
    client.shrink_buffers();
    client.send(get);
    up.wait_for_ended(1);
    CHECK(cut);
    client.close();
    leaks.expect_nothing_left();
}

TEST_CASE("faults: 100 MB to a client that does not read stay with the upstream")
{
    std::atomic<std::size_t> sent{0};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.shrink_buffers();
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        const std::string piece(100'000, 'x');
        for (int i = 0; i < 1000; ++i) {
            client.send(piece);
            sent += piece.size();
        }
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    const leak_check leaks;
    const auto before = resident_bytes();
    auto client = gateway.connect();
    client.shrink_buffers();
    client.send(get);
    client.read_until("\r\n\r\n");
    // Until the upstream can send no more: the same number twice, with a pause in between.
    std::size_t last = 1;
    CHECK(eventually([&] {
        const auto now = sent.load();
        const bool settled = now == last;
        last = now;
        std::this_thread::sleep_for(50ms);
        return settled;
    }));
    CHECK(sent < 30'000'000); // in the kernel's buffers, not in the gateway
    CHECK(resident_bytes() < before + 8'000'000);
    client.reset();
    up.wait_for_ended(1);
    leaks.expect_nothing_left();
}

TEST_CASE("faults: an upload to an upstream that does not read stays with the client, and ends with its timeout")
{
    std::atomic<bool> go_on{false};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        client.shrink_buffers();
        self.record(client.read_until("\r\n\r\n"));
        eventually([&] { return go_on.load(); });
    });
    running_gateway gateway(running_gateway::in_front_of(up, "", "    limits: { body: 200MiB }\n",
                                                         "    timeouts: { first_byte: 300ms, idle: 300ms }\n"));
    const leak_check leaks;
    const auto before = resident_bytes();
    {
        auto client = gateway.connect();
        client.shrink_buffers();
        std::thread sender([&] {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
            const std::string piece(100'000, 'x');
            for (int i = 0; i < 1000 && !go_on; ++i)
                client.send(piece);
        });
        const auto result = client.read_response();
        CHECK(status_of(result) == 504);
        CHECK(resident_bytes() < before + 8'000'000);
        go_on = true;
        client.read_all();
        sender.join();
    }
    up.wait_for_ended(1);
    leaks.expect_nothing_left();
}

namespace {

constexpr auto slow_pause = 400ms; // the fault itself: a client this slow
const std::string short_waits = "    timeouts: { first_byte: 100ms, idle: 100ms }\n";

// Sends the head and the first half of a body, and the other half much later.
void send_slowly(raw_connection& client, const std::string& first, const std::string& rest)
{
    client.send(first);
    std::this_thread::sleep_for(slow_pause);
    client.send(rest);
}

const std::string refunds_failures =
    "chains:\n  c:\n    store: local\n    rules:\n"
    "      - { name: one, key: [route], algorithm: fixed_window, align: first, limit: 1/hour,\n"
    "          outcome: { refund: [ upstream_failure, timeout ] } }\n"
    "routes:\n  - { name: all, upstream: up, chains: [ c ] }\n";

} // namespace

TEST_CASE("faults: a slow upload takes the client's time, not the upstream's")
{
    SUBCASE("the upstream may answer after first_byte has passed since the head")
    {
        recorder up;
        running_gateway gateway(running_gateway::in_front_of(up.server(), "", "", short_waits));
        auto client = gateway.connect();
        send_slowly(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", "world");
        CHECK(status_of(client.read_response()) == 200);
        CHECK(plain_body(up.last()) == "helloworld");
        send_slowly(client, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                    "5\r\nworld\r\n0\r\n\r\n");
        CHECK(status_of(client.read_response()) == 200);
        CHECK(plain_body(up.last()) == "helloworld");
    }
    SUBCASE("one that has the whole request and says nothing is late")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) {
            self.read_request(client);
            client.read_all();
        });
        running_gateway gateway(running_gateway::in_front_of(up, "", "", short_waits));
        auto client = gateway.connect();
        send_slowly(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", "world");
        CHECK(status_of(client.read_response()) == 504);
    }
    SUBCASE("an answer that waits for the rest of the upload does not stall")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) {
            self.record(client.read_until("hello"));
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            self.record(client.read_until("world"));
            client.send("world");
        });
        running_gateway gateway(running_gateway::in_front_of(up, "", "", short_waits));
        auto client = gateway.connect();
        send_slowly(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", "world");
        CHECK(body_of(client.read_response()) == "helloworld");
    }
}

TEST_CASE("faults: an upload that never ends is the client's fault, and is charged")
{
    const std::string half = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello";
    const std::string impatient = "    timeouts: { body: 300ms }\n";
    SUBCASE("before the answer: 408")
    {
        raw_upstream up([](raw_upstream&, raw_connection& client) { client.read_all(); });
        running_gateway gateway(running_gateway::in_front_of(up, refunds_failures, impatient, short_waits));
        auto client = gateway.connect();
        client.send(half);
        const auto result = client.read_all();
        CHECK(status_of(result) == 408);
        CHECK(result.find("\"code\":\"body_timeout\"") != std::string::npos);
        CHECK(status_of(gateway.ask(get)) == 429);
    }
    SUBCASE("after the answer has begun: the answer is cut")
    {
        raw_upstream up([](raw_upstream& self, raw_connection& client) {
            self.record(client.read_until("hello"));
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            client.read_all();
        });
        running_gateway gateway(running_gateway::in_front_of(up, refunds_failures, impatient, short_waits));
        auto client = gateway.connect();
        client.send(half);
        CHECK(status_of(client.read_all()) == 200);
        CHECK((client.was_closed() || client.was_reset()));
        CHECK(status_of(gateway.ask(get)) == 429);
    }
}

TEST_CASE("faults: a client that vanishes takes its upstream request with it")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        const auto request = self.read_request(client);
        if (request.starts_with("GET /stream")) {
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf");
        }
        CHECK(client.read_all() == ""); // no answer; waits until the gateway closes the connection
        CHECK(client.was_closed());
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    const leak_check leaks;
    SUBCASE("reset while the answer is awaited")
    {
        auto client = gateway.connect();
        client.send(get);
        up.wait_for_received(1);
        client.reset();
        up.wait_for_ended(1);
    }
    SUBCASE("reset in the middle of the answer, the upstream silent")
    {
        auto client = gateway.connect();
        client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
        client.read_until("half");
        client.reset();
        up.wait_for_ended(1);
    }
    SUBCASE("reset in the middle of its body")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf");
        up.wait_for_received(1);
        client.reset();
        up.wait_for_ended(1);
    }
    SUBCASE("end of stream in the middle of its body")
    {
        auto client = gateway.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf");
        up.wait_for_received(1);
        client.close();
        up.wait_for_ended(1);
    }
    leaks.expect_nothing_left();
}

TEST_CASE("faults: a client that closes in the middle of a streamed answer is noticed")
{
    raw_upstream up([](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        const std::string piece = "fffff\r\n" + std::string(0xfffff, 'x') + "\r\n";
        for (int i = 0; i < 50; ++i)
            client.send(piece);
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    const leak_check leaks;
    auto client = gateway.connect();
    client.send(get);
    client.read_until("xxxx");
    client.close();
    up.wait_for_ended(1);
    leaks.expect_nothing_left();
}

TEST_CASE("faults: a half-closed client still gets its whole answer")
{
    const std::string large(2'000'000, 'x');
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + large);
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    for (const auto& request : {get, std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")}) {
        auto client = gateway.connect();
        client.send(request);
        client.finish_sending();
        CHECK(body_of(client.read_all()) == large);
        CHECK_FALSE(client.was_reset());
    }
}

TEST_CASE("faults: hundreds of broken connections leave nothing behind")
{
    recorder up;
    running_gateway gateway(running_gateway::in_front_of(up.server(), "", "", short_pool));
    const leak_check leaks;
    for (int i = 0; i < 500; ++i) {
        auto client = gateway.connect();
        switch (i % 5) {
        case 0:
            client.send("GET / HTTP/1.1\r\nHo");
            client.reset();
            break;
        case 1:
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
            client.reset();
            break;
        case 2:
            client.send(get);
            client.close();
            break;
        case 3:
            client.send("garbage\r\n\r\n");
            client.reset();
            break;
        default:
            client.reset();
            break;
        }
    }
    CHECK(status_of(gateway.ask(get)) == 200);
    leaks.expect_nothing_left();
}

TEST_CASE("faults: O2, stopping does not wait for an upstream that hangs")
{
    std::atomic<bool> over{false};
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        eventually([&] { return over.load(); });
    });
    auto gateway =
        std::make_unique<running_gateway>(running_gateway::in_front_of(up, "", "", "    max_connections: 1\n"));
    auto first = gateway->connect();
    first.send(get);
    up.wait_for_received(1);
    auto second = gateway->connect(); // waits in the queue
    second.send(get);
    auto uploading = gateway->connect();
    uploading.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    const auto began = std::chrono::steady_clock::now();
    gateway.reset();
    CHECK(std::chrono::steady_clock::now() - began < 2s);
    CHECK(first.read_all() == "");
    CHECK(first.was_closed());
    over = true;
}

TEST_CASE("faults: O2, a drain finishes requests in flight, closes idle connections, and answers Connection: close")
{
    std::mutex gate;
    gate.lock();
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        const auto request = self.read_request(client);
        if (request.find("/slow") != std::string::npos)
            std::lock_guard open(gate);
        client.send(ok);
        self.read_request(client);
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    auto idle = gateway.connect();
    idle.send(get);
    CHECK(status_of(idle.read_response()) == 200);
    auto busy = gateway.connect();
    busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    up.wait_for_received(up.received().size() + 1);
    gateway.app().drain();
    CHECK(idle.read_all() == "");
    CHECK(idle.was_closed());
    gate.unlock();
    const auto result = busy.read_all();
    CHECK(status_of(result) == 200);
    CHECK(field_of(result, "Connection") == "close");
    CHECK(busy.was_closed());
}
