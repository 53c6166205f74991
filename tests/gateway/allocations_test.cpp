// The heap allocations of a warm connection per request are few, whatever the request: every allocation of this process
// is counted, except in the threads of the test's clients and upstream.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <sys/socket.h>

using namespace headgate::tests;

namespace {

std::atomic<std::size_t> allocations{0};
thread_local bool counts = true;

} // namespace

extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);

// Replace the C library's functions: operator new and Asio both end here.
extern "C" void* malloc(std::size_t size)
{
    if (counts)
        allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size)
{
    if (counts)
        allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, size);
}

namespace {

// Frames of coroutines and handlers that Asio does not keep for the next one.
constexpr std::size_t most_per_request = 40;

const std::string small_answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const std::string empty_answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
const std::string chunked_answer =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n";
const std::string large_answer = "HTTP/1.1 200 OK\r\nContent-Length: 262144\r\n\r\n" + std::string(262144, 'x');

void answer_requests(raw_upstream&, raw_connection& client)
{
    counts = false;
    std::string bytes;
    for (;;) {
        const auto some = client.read_some();
        if (some.empty())
            return;
        bytes += some;
        for (auto size = whole_message(bytes); size != 0; size = whole_message(bytes)) {
            const auto& answer = bytes.starts_with("HEAD ")      ? empty_answer
                                 : bytes.find(" /large ") < 10   ? large_answer
                                 : bytes.find(" /chunked ") < 12 ? chunked_answer
                                                                 : small_answer;
            bytes.erase(0, size);
            client.send(answer);
        }
    }
}

std::string one_route_a_dialect()
{
    std::string routes;
    for (const std::string name : {"ietf-triple", "x-ratelimit", "envoy"})
        routes += "  - { name: " + name + ", match: { path: /" + name +
                  " }, upstream: up, chains: [ few ], answers: { " + "dialect: " + name + " } }\n";
    return routes;
}

struct row
{
    std::string what;
    std::string request;
    unsigned status;
};

} // namespace

TEST_CASE("gateway: a warm connection allocates a few times per request, answered, refused or cut")
{
    counts = false;
    raw_upstream up(answer_requests);
    running_gateway gateway(running_gateway::in_front_of(
        up, "chains:\n  few:\n    store: local\n    rules:\n"
            "      - { name: one, key: [client_ip], algorithm: fixed_window, limit: 1/hour }\n"
            "  many:\n    store: local\n    rules:\n"
            "      - { name: lots, key: [client_ip, route], algorithm: token_bucket, limit: 1000000/second }\n"
            "      - { name: at-once, key: [route], algorithm: concurrency, limit: 1000 }\n"
            "answers: { explain_networks: 127.0.0.0/8 }\n"
            "routes:\n" +
                one_route_a_dialect() +
                "  - { name: worded, match: { path: /worded }, upstream: up, chains: [ few ], answers: { body: "
                "\"{rule} {limit} "
                "{wait}\", content_type: application/json, headers: { X-Docs: /limits }, retry_jitter: 5s } }\n"
                "  - { name: refused, match: { path: /refused }, upstream: up, chains: [ few ] }\n"
                "  - { name: posts, match: { host: b, path: /posts, methods: [ POST ] }, upstream: up }\n"
                "  - { name: all, match: { host: a }, upstream: up, chains: [ many ] }\n"));
    const std::string host = " HTTP/1.1\r\nHost: a\r\n";
    const std::vector<row> rows = {
        {"GET", "GET /" + host + "\r\n", 200},
        {"GET, not in plain form", "GET /a/%2e%2e/b//c?q" + host + "X-Forwarded-For: 192.0.2.1\r\n\r\n", 200},
        {"GET in chunks", "GET /chunked" + host + "\r\n", 200},
        {"GET of 256 KiB", "GET /large" + host + "\r\n", 200},
        {"POST of 1 KiB", "POST /" + host + "Content-Length: 1024\r\n\r\n" + std::string(1024, 'x'), 200},
        {"POST of 100 KiB", "POST /" + host + "Content-Length: 102400\r\n\r\n" + std::string(102400, 'x'), 200},
        {"POST in chunks", "POST /" + host + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n", 200},
        {"POST of 100 KiB in chunks",
         "POST /" + host + "Transfer-Encoding: chunked\r\n\r\n19000\r\n" + std::string(102400, 'x') + "\r\n0\r\n\r\n",
         200},
        {"refused by a limit", "GET /refused" + host + "\r\n", 429},
        {"refused in the operator's words", "GET /worded" + host + "\r\n", 429},
        {"refused with an explanation", "GET /refused" + host + "X-RateLimit-Explain: 1\r\n\r\n", 429},
        {"refused in ietf-triple", "GET /ietf-triple" + host + "\r\n", 429},
        {"refused in x-ratelimit", "GET /x-ratelimit" + host + "\r\n", 429},
        {"refused in envoy", "GET /envoy" + host + "\r\n", 429},
        {"refused with a body", "POST /refused" + host + "Content-Length: 4\r\n\r\nbody", 429},
        {"no such method", "GET /posts HTTP/1.1\r\nHost: b\r\n\r\n", 405},
        {"no such route", "GET / HTTP/1.1\r\nHost: b\r\n\r\n", 404},
        {"HEAD", "HEAD /" + host + "\r\n", 200},
    };
    for (const auto& [what, request, status] : rows) {
        CAPTURE(what);
        auto client = gateway.connect();
        const bool has_body = !request.starts_with("HEAD");
        const auto ask = [&, &text = request] {
            client.send(text);
            return status_of(client.read_response(has_body));
        };
        for (int i = 0; i < 100; ++i)
            ask();
        const auto before = allocations.load();
        int wrong = 0;
        const int rounds = 1000;
        for (int i = 0; i < rounds; ++i)
            wrong += ask() != status;
        CHECK(wrong == 0);
        CHECK((allocations.load() - before) / rounds <= most_per_request);
    }
}
