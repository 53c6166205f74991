// Answers that are long enough to pass through a kernel pipe instead of the gateway's memory.
#include "limiter/io/kernel_pipe.hpp"
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace headgate::tests {

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// Every part is different.
std::string long_body(std::size_t bytes)
{
    std::string all;
    all.reserve(bytes + 16);
    for (std::uint64_t i = 0; all.size() < bytes; ++i)
        all += std::to_string(i * 2654435761u) + ' ';
    all.resize(bytes);
    return all;
}

std::string long_answer(const std::string& body)
{
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string read_bytes(raw_connection& from, std::size_t count)
{
    std::string all;
    for (std::string some = "-"; all.size() < count && !some.empty(); all += some)
        some = from.read_some(count - all.size());
    return all;
}

// Forbids splice in this thread and the threads that it starts, as in a sandbox.
void forbid_splice()
{
    constexpr auto code = [](int of) { return static_cast<std::uint16_t>(of); };
    sock_filter rules[] = {
        BPF_STMT(code(BPF_LD | BPF_W | BPF_ABS), offsetof(seccomp_data, nr)),
        BPF_JUMP(code(BPF_JMP | BPF_JEQ | BPF_K), SYS_splice, 0, 1),
        BPF_STMT(code(BPF_RET | BPF_K), SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(code(BPF_RET | BPF_K), SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{4, rules};
    CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

} // namespace

TEST_CASE("long answers: one of any length arrives whole, and the connections are reused")
{
    for (const std::size_t bytes : {65'535u, 65'536u, 69'632u, 131'072u, 135'168u, 331'777u, 5'000'001u}) {
        CAPTURE(bytes);
        const auto body = long_body(bytes);
        raw_upstream up(always(long_answer(body)));
        running_gateway gateway(running_gateway::in_front_of(up));
        auto client = gateway.connect();
        for (int i = 0; i < 3; ++i) {
            client.send(get);
            CHECK((body_of(client.read_response()) == body));
        }
        CHECK(up.connections() == 1);
    }
}

TEST_CASE("long answers: one that comes in pieces, with pauses, arrives whole")
{
    const auto body = long_body(600'000);
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        const auto all = long_answer(body);
        while (!self.read_request(client).empty()) {
            std::size_t at = 0;
            for (const std::size_t piece : {10u, 60u, 1'000u, 80'000u, 1u, 1u, 300'000u, 7u}) {
                client.send(std::string_view(all).substr(at, piece));
                at += piece;
                CHECK(eventually([&] { return client.has_arrived(); }));
            }
            client.send(std::string_view(all).substr(at));
        }
    });
    running_gateway gateway(running_gateway::in_front_of(up));
    for (const std::string version : {"1.0", "1.1"}) {
        CAPTURE(version);
        auto client = gateway.connect();
        client.send("GET / HTTP/" + version + "\r\nHost: a\r\nConnection: close\r\n\r\n");
        CHECK((body_of(client.read_all()) == body));
        CHECK(client.was_closed());
        CHECK_FALSE(client.was_reset());
    }
}

TEST_CASE("long answers: D3, one that is cut short is a broken answer, never a clean end")
{
    const auto body = long_body(1'000'000);
    const auto all = long_answer(body);
    for (const std::size_t sent : {100'000u, 500'000u, 999'999u}) {
        CAPTURE(sent);
        raw_upstream up([&](raw_upstream& self, raw_connection& client) {
            self.read_request(client);
            client.send(std::string_view(all).substr(0, sent));
        });
        running_gateway gateway(running_gateway::in_front_of(up));
        auto client = gateway.connect();
        client.send(get);
        CHECK(body_of(client.read_all()).size() < body.size());
        CHECK(client.was_reset());
    }
}

TEST_CASE("long answers: D3, one that stalls is cut after the timeout")
{
    const auto all = long_answer(long_body(1'000'000));
    raw_upstream up([&](raw_upstream& self, raw_connection& client) {
        self.read_request(client);
        client.send(std::string_view(all).substr(0, 500'000));
        client.read_all();
        CHECK(client.was_closed());
    });
    running_gateway gateway(running_gateway::in_front_of(up, "", "", "    timeouts: { idle: 100ms }\n"));
    auto client = gateway.connect();
    client.send(get);
    CHECK(client.read_all().size() < all.size());
    CHECK(client.was_reset());
    up.wait_for_ended(1);
}

TEST_CASE("long answers: D4, bytes behind one are never the answer to another request")
{
    const auto body = long_body(400'000);
    recorder up(long_answer(body) + "HTTP/1.1 200 poison\r\nContent-Length: 6\r\n\r\npoison");
    running_gateway gateway(running_gateway::in_front_of(up.server()));
    auto client = gateway.connect();
    for (int i = 0; i < 3; ++i) {
        client.send(get);
        CHECK((body_of(client.read_response()) == body));
    }
    CHECK(up.connections() == 3);
}

TEST_CASE("long answers: a client that leaves in the middle of one does not end the gateway")
{
    const auto answer = long_answer(long_body(8'000'000));
    raw_upstream up(always(answer));
    running_gateway gateway(running_gateway::in_front_of(up));
    for (const bool finishes_first : {true, false}) { // then the failure is a broken pipe
        auto client = gateway.connect();
        client.send(get);
        client.read_until(answer.substr(200'000, 16));
        if (finishes_first)
            client.finish_sending();
        client.reset();
    }
    CHECK((body_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")) == body_of(answer)));
}

TEST_CASE("long answers: clients that do not read hold a bounded number of pipes, and all get their answers")
{
    constexpr std::size_t clients = pipe_pool::most + 8;
    const auto body = long_body(8'000'000);
    raw_upstream up(always(long_answer(body)));
    const auto before = open_pipe_ends();
    running_gateway gateway(running_gateway::in_front_of(up));
    // The first bytes are copied with the head; only the rest waits in a pipe.
    const auto beginning = body.substr(0, 100'000);
    std::vector<raw_connection> waiting;
    for (std::size_t i = 0; i < clients; ++i) {
        waiting.push_back(gateway.connect());
        waiting.back().send(get);
        CHECK((body_of(waiting.back().read_until(beginning.substr(beginning.size() - 16))) == beginning));
    }
    CHECK(eventually([&] { return open_pipe_ends() == before + 2 * pipe_pool::most; }));
    const auto rest = body.substr(beginning.size());
    for (auto& client : waiting)
        CHECK((read_bytes(client, rest.size()) == rest));
    CHECK(open_pipe_ends() == before + 2 * pipe_pool::most);
}

TEST_CASE("long answers: where splice is not allowed they are copied")
{
    const auto body = long_body(1'000'000);
    raw_upstream up(always(long_answer(body)));
    const auto before = open_pipe_ends();
    std::thread([&] {
        forbid_splice();
        running_gateway gateway(running_gateway::in_front_of(up));
        auto client = gateway.connect();
        for (int i = 0; i < 3; ++i) {
            client.send(get);
            CHECK((body_of(client.read_response()) == body));
        }
        CHECK(open_pipe_ends() <= before + 2); // the pipe that was opened to try
    }).join();
}

} // namespace headgate::tests
