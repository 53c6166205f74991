// Upstream servers with host names. getaddrinfo is replaced for names under .test, so that a test decides what name
// servers answer, and when.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <latch>
#include <map>
#include <netdb.h>

using namespace headgate::tests;

namespace {

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// The addresses that the name servers return, for names under .test only.
class name_servers
{
public:
    static name_servers& all()
    {
        static name_servers here;
        return here;
    }
    void say(const std::string& name, std::vector<std::string> addresses)
    {
        std::lock_guard guard(lock_);
        known_[name] = std::move(addresses);
    }
    std::vector<std::string> ask(const std::string& name)
    {
        if (name == "slow.test")
            gate_->wait();
        std::lock_guard guard(lock_);
        ++asked_;
        return known_[name];
    }
    int lookups()
    {
        std::lock_guard guard(lock_);
        return asked_;
    }
    // Lookups of slow.test wait for this. Not destroyed, because a lookup may outlive its gateway.
    std::shared_ptr<std::latch> close_gate() { return gate_ = std::make_shared<std::latch>(1); }

private:
    std::mutex lock_;
    std::map<std::string, std::vector<std::string>> known_;
    int asked_ = 0;
    std::shared_ptr<std::latch> gate_;
};

std::string in_front_of_name(const std::string& name, const raw_upstream& server, const std::string& more = "")
{
    return "workers: 1\nlisteners:\n  - address: 127.0.0.1:0\nupstreams:\n  up: { servers: [ \"" + name + ":" +
           std::to_string(server.port()) + "\" ]" + more +
           " }\n  literal: { servers: [ 127.0.0.1:" + std::to_string(server.port()) +
           " ] }\nroutes:\n  - { name: literal, match: { path: /literal }, upstream: literal }\n"
           "  - { name: all, upstream: up }\n";
}

} // namespace

// Replaces the C library's function.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (!std::string_view(node).ends_with(".test"))
        return real(node, service, hints, found);
    addrinfo* last = nullptr;
    *found = nullptr;
    for (const auto& address : name_servers::all().ask(node)) {
        addrinfo* one = nullptr;
        if (const int status = real(address.c_str(), service, hints, &one); status != 0)
            return status;
        (last ? last->ai_next : *found) = one;
        last = one;
    }
    return *found ? 0 : EAI_NONAME;
}

TEST_CASE("names: localhost is found, with any addresses")
{
    raw_upstream up(always(ok));
    running_gateway gateway(in_front_of_name("localhost", up));
    for (int i = 0; i < 4; ++i)
        CHECK(status_of(gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")) == 200);
}

TEST_CASE("names: only requests that need a slow name wait for it")
{
    raw_upstream up(always(ok));
    name_servers::all().say("slow.test", {"127.0.0.1"});
    const auto gate = name_servers::all().close_gate();
    SUBCASE("it is found later")
    {
        running_gateway gateway(in_front_of_name("slow.test", up, ", timeouts: { connect: 5m }"));
        auto waiting = gateway.connect();
        waiting.send(get);
        CHECK(status_of(gateway.ask("GET /literal HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
        gate->count_down();
        CHECK(status_of(waiting.read_response()) == 200);
    }
    SUBCASE("it takes longer than the connect timeout: 504, and the next request finds it")
    {
        running_gateway gateway(in_front_of_name("slow.test", up, ", timeouts: { connect: 100ms }"));
        const auto result = gateway.ask(get);
        CHECK(status_of(result) == 504);
        CHECK(result.find("upstream_connect_timeout") != std::string::npos);
        gate->count_down();
        CHECK(eventually([&] { return status_of(gateway.ask(get)) == 200; }));
    }
    SUBCASE("stopping does not wait for name servers")
    {
        {
            running_gateway gateway(in_front_of_name("slow.test", up, ", timeouts: { connect: 5m }"));
            auto waiting = gateway.connect();
            waiting.send(get);
            CHECK(status_of(gateway.ask("GET /literal HTTP/1.1\r\nHost: a\r\n\r\n")) == 200);
        }
        gate->count_down();
    }
}

TEST_CASE("names: the addresses of a name are used in turn, and after one that refuses the next is tried")
{
    raw_upstream up(always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"));
    // The port of `up` on an address it does not listen on is refused.
    name_servers::all().say("both.test", {"127.0.0.2", "127.0.0.1"});
    running_gateway gateway(in_front_of_name("both.test", up));
    for (int i = 0; i < 6; ++i)
        CHECK(status_of(gateway.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")) == 200);
    CHECK(up.connections() == 6);
}

TEST_CASE("names: one without an address is 502, and is not looked up for every request")
{
    raw_upstream up(always(ok));
    name_servers::all().say("nowhere.test", {});
    const auto before = name_servers::all().lookups();
    running_gateway gateway(in_front_of_name("nowhere.test", up));
    for (int i = 0; i < 5; ++i) {
        const auto result = gateway.ask(get);
        CHECK(status_of(result) == 502);
        CHECK(result.find("upstream_unresolved") != std::string::npos);
    }
    CHECK(name_servers::all().lookups() == before + 1);
}
