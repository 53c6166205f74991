#include "gateway/upstream/pool.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

using namespace headgate::http;
using namespace std::chrono_literals;
using pool = upstream_pool;
using action = upstream_pool::action;

namespace {

constexpr pool::clock_time start{};

pool::connection_id open(pool& from, pool::clock_time now = start)
{
    const auto ticket = from.checkout(now);
    REQUIRE(ticket.what == action::open_new);
    from.connected(ticket.connection);
    return ticket.connection;
}

} // namespace

TEST_CASE("pool: the connection given back last is used first")
{
    pool one(1, {});
    const auto a = open(one), b = open(one);
    CHECK(one.give_back(a, start).what == action::wait);
    one.give_back(b, start);
    CHECK(one.idle_connections() == 2);
    auto ticket = one.checkout(start);
    CHECK(ticket.what == action::use_idle);
    CHECK(ticket.connection == b);
    CHECK(one.checkout(start).connection == a);
    CHECK(one.checkout(start).what == action::open_new);
    CHECK(one.open_connections() == 3);
}

TEST_CASE("pool: idle connections expire oldest first, by the given time")
{
    pool one(1, {.idle_timeout = 10s});
    const auto a = open(one), b = open(one);
    one.give_back(a, start);
    one.give_back(b, start + 5s);
    CHECK(one.expire(start + 9s) == pool::nothing);
    CHECK(one.expire(start + 10s) == a);
    CHECK(one.expire(start + 10s) == pool::nothing);
    CHECK(one.expire(start + 15s) == b);
    CHECK(one.open_connections() == 0);
}

TEST_CASE("pool: servers are used in turn")
{
    pool three(3, {});
    std::vector<std::uint32_t> order;
    for (int i = 0; i < 6; ++i)
        order.push_back(three.checkout(start).server);
    CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("pool: at the cap requests wait in order, and when the queue is full they are refused")
{
    pool one(1, {.connections = 1, .waiting = 2});
    const auto a = open(one);
    const auto first = one.checkout(start), second = one.checkout(start);
    CHECK(first.what == action::wait);
    CHECK(second.what == action::wait);
    CHECK(one.checkout(start).what == action::refuse);
    auto woken = one.give_back(a, start);
    CHECK(woken.what == action::use_idle);
    CHECK(woken.waiter == first.waiter);
    CHECK(woken.connection == a);
    woken = one.discard(a, start);
    CHECK(woken.what == action::open_new);
    CHECK(woken.waiter == second.waiter);
    CHECK(one.waiting() == 0);
    CHECK(one.open_connections() == 1);
}

TEST_CASE("pool: a waiter that leaves is not woken")
{
    pool one(1, {.connections = 1});
    const auto a = open(one);
    const auto first = one.checkout(start), second = one.checkout(start), third = one.checkout(start);
    one.cancel_wait(second.waiter);
    one.cancel_wait(second.waiter);
    CHECK(one.waiting() == 2);
    CHECK(one.give_back(a, start).waiter == first.waiter);
    CHECK(one.give_back(a, start).waiter == third.waiter);
    CHECK(one.give_back(a, start).waiter == pool::nothing);
}

TEST_CASE("pool: waiting requests are served in FIFO order")
{
    pool one(1, {.connections = 1});
    open(one);
    CHECK(one.checkout(start).what == action::wait);
    CHECK(one.checkout(start).what == action::wait);
}

TEST_CASE("D2: a server that cannot be reached rests, other servers are used, and it is tried again later")
{
    pool two(2, {.failures_to_rest = 2, .rest_time = 5s});
    for (int i = 0; i < 2; ++i) {
        const auto ticket = two.checkout(start, 1);
        CHECK(ticket.server == 0);
        CHECK(two.connect_failed(ticket.connection, start).what == action::wait);
    }
    CHECK(two.resting(0, start + 1s));
    for (int i = 0; i < 4; ++i)
        CHECK(two.checkout(start + 1s).server == 1);
    std::set<std::uint32_t> later;
    for (int i = 0; i < 2; ++i)
        later.insert(two.checkout(start + 5s).server);
    CHECK(later.size() == 2);

    pool one(1, {.failures_to_rest = 1});
    const auto failed = one.checkout(start);
    one.connect_failed(failed.connection, start);
    CHECK(one.checkout(start, 0).what == action::open_new); // a server that failed is better than a refusal
}

TEST_CASE("D2: when connecting fails, the next waiting request gets the place")
{
    pool one(1, {.connections = 1});
    const auto ticket = one.checkout(start);
    const auto waiter = one.checkout(start);
    const auto woken = one.connect_failed(ticket.connection, start);
    CHECK(woken.what == action::open_new);
    CHECK(woken.waiter == waiter.waiter);
}

TEST_CASE("D5: an idle connection that its server has closed is dropped and never reused")
{
    pool one(1, {});
    const auto a = open(one), b = open(one);
    one.give_back(a, start);
    CHECK_FALSE(one.drop_idle(b));
    CHECK(one.drop_idle(a));
    CHECK_FALSE(one.drop_idle(a));
    CHECK(one.checkout(start).what == action::open_new);
    CHECK(one.open_connections() == 2);
}

TEST_CASE("C10: a request is sent again only when it cannot be executed twice")
{
    const auto idempotent = [](method_id method) {
        return failed_attempt{.method = method, .request_bytes_sent = 100, .body_replayable = true};
    };
    for (const auto method : {method_id::get, method_id::head, method_id::put, method_id::delete_, method_id::options})
        CHECK(may_retry(idempotent(method)));
    for (const auto method : {method_id::post, method_id::patch, method_id::other})
        CHECK_FALSE(may_retry(idempotent(method)));
    auto attempt = idempotent(method_id::get);
    attempt.response_bytes_received = 1;
    CHECK_FALSE(may_retry(attempt));
    attempt = idempotent(method_id::get);
    attempt.retries = 1;
    CHECK_FALSE(may_retry(attempt));
    attempt = idempotent(method_id::put);
    attempt.body_replayable = false;
    CHECK_FALSE(may_retry(attempt));
    const failed_attempt stale{.method = method_id::other, .reused_connection = true, .body_replayable = true};
    CHECK(may_retry(stale));
    for (const auto method : {method_id::post, method_id::patch}) {
        auto unsafe = stale;
        unsafe.method = method;
        CHECK_FALSE(may_retry(unsafe));
    }
    CHECK(may_retry({.method = method_id::post, .connected = false, .body_replayable = true})); // no byte was sent
    CHECK_FALSE(may_retry({.method = method_id::post, .connected = false, .body_replayable = false}));
}

TEST_CASE("pool: in any sequence of calls the counts are right, the caps hold and every waiting request is served")
{
    std::mt19937 engine(7);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    for (int life = 0; life < 200; ++life) {
        const pool_limits limits{.connections = 1 + random() % 4,
                                 .waiting = random() % 5,
                                 .idle_timeout = 10s,
                                 .failures_to_rest = 2,
                                 .rest_time = 3s};
        const auto servers = 1 + random() % 3;
        pool tested(servers, limits);
        auto now = start;
        std::vector<pool::connection_id> busy;
        std::set<pool::connection_id> idle;
        std::vector<pool::waiter_id> waiting;
        const auto accept = [&](const pool::ticket& ticket) {
            if (ticket.what == action::wait || ticket.what == action::refuse)
                return;
            if (ticket.what == action::use_idle)
                idle.erase(ticket.connection);
            CHECK(std::find(busy.begin(), busy.end(), ticket.connection) == busy.end());
            busy.push_back(ticket.connection);
        };
        const auto woken = [&](const pool::ticket& ticket) {
            if (ticket.waiter != pool::nothing) {
                REQUIRE_FALSE(waiting.empty());
                CHECK(ticket.waiter == waiting.front());
                waiting.erase(waiting.begin());
                accept(ticket);
            }
        };
        for (int step = 0; step < 200; ++step) {
            now += std::chrono::milliseconds(random() % 2000);
            const auto pick = busy.empty() ? 0 : random() % busy.size();
            const auto take = [&] {
                const auto id = busy[pick];
                busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(pick));
                return id;
            };
            switch (random() % 8) {
            case 0:
                if (!busy.empty())
                    woken(tested.discard(take(), now));
                break;
            case 1:
                if (!busy.empty())
                    woken(tested.connect_failed(take(), now));
                break;
            case 2:
            case 3:
                if (!busy.empty()) {
                    const auto id = take();
                    const auto ticket = tested.give_back(id, now);
                    if (ticket.waiter == pool::nothing)
                        idle.insert(id);
                    woken(ticket);
                }
                break;
            case 4:
                if (!waiting.empty()) {
                    const auto at = waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
                    tested.cancel_wait(*at);
                    waiting.erase(at);
                }
                break;
            case 5:
                for (auto id = tested.expire(now); id != pool::nothing; id = tested.expire(now))
                    CHECK(idle.erase(id) == 1);
                break;
            default: {
                const auto ticket = tested.checkout(now);
                if (ticket.what == action::wait)
                    waiting.push_back(ticket.waiter);
                if (ticket.what == action::refuse)
                    CHECK(waiting.size() == limits.waiting);
                accept(ticket);
            }
            }
            REQUIRE(tested.open_connections() == busy.size() + idle.size());
            REQUIRE(tested.idle_connections() == idle.size());
            REQUIRE(tested.waiting() == waiting.size());
            CHECK(tested.open_connections() <= limits.connections * servers);
            CHECK((waiting.empty() ||
                   busy.size() == limits.connections * servers)); // no request waits while a connection is free
        }
    }
}
