// A failover under load: how long it takes, and that every verdict is right before and after.
#include "tests/redis_client/sentinel_client.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace headgate;
using namespace headgate::testing;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

// Takes from one key again and again, and records the decisions.
struct asker
{
    explicit asker(int number)
        : limit(static_cast<std::uint64_t>(2000 + 7 * number)), rule("group" + std::to_string(number), limit)
    {}
    std::uint64_t limit; // different for each key: it shows which key a verdict belongs to
    one_rule rule;
    std::uint64_t before = 0, after = 0; // admitted, by the first master and by the next
    std::uint64_t counted = 0;           // the used amount in the last reply
    std::uint64_t lost = 0;              // writes that a later master did not have
    std::uint64_t foreign = 0;           // verdicts that cannot be this key's
    bool is_refused = false;             // at the limit
    bool has_ended = false;
};

struct load
{
    explicit load(sentinel_client& c) : by(c), first(c.master->generation())
    {
        for (int i = 0; i < 16; ++i)
            askers.push_back(std::make_unique<asker>(i));
    }
    void begin()
    {
        for (auto& each : askers)
            headgate::spawn(by.loop.events.get_executor(), run(*each));
    }
    task<void> run(asker& a)
    {
        steady_timer pause(by.loop.events.get_executor());
        while (!is_over && !a.is_refused) {
            const auto got = co_await by.take(*a.rule.rules, "one");
            note(a, got);
            if (got.trouble == redis::trouble::none)
                continue;
            pause.expires_after(2ms);
            co_await pause.async_wait(as_result);
        }
        a.has_ended = true;
    }
    void note(asker& a, const sentinel_client::outcome& got)
    {
        if (got.trouble != redis::trouble::none) {
            ++troubles[static_cast<std::size_t>(got.trouble)];
            return;
        }
        a.foreign += got.decided.limit != a.limit || got.decided.remaining > a.limit ? 1 : 0;
        a.is_refused = !got.admitted;
        const auto used = a.limit - got.decided.remaining - (got.admitted ? 1 : 0);
        if (used < a.counted)
            a.lost += a.counted - used;
        a.counted = a.limit - got.decided.remaining;
        if (by.master->generation() == first) {
            a.before += got.admitted ? 1 : 0;
            return;
        }
        if (first_success == steady::time_point{})
            first_success = steady::now();
        a.after += got.admitted ? 1 : 0;
    }
    bool all_have(std::uint64_t admitted) const
    {
        return std::all_of(askers.begin(), askers.end(), [&](const auto& each) { return each->before >= admitted; });
    }
    bool has_ended() const
    {
        return std::all_of(askers.begin(), askers.end(), [](const auto& each) { return each->has_ended; });
    }

    sentinel_client& by;
    const std::uint64_t first;
    std::vector<std::unique_ptr<asker>> askers;
    std::array<std::uint64_t, 8> troubles{};
    steady::time_point first_success{};
    bool is_over = false;
};

// Stops the primary independently of the loop, and records when a replica first reports that it is the master.
struct failover_clock
{
    failover_clock(sentinel_group& group, void (redis_server::*fault)())
        : thread([this, &group, fault] {
              gone = steady::now();
              (group.primary.*fault)();
              while (!is_over && group.promoted() == 0)
                  std::this_thread::sleep_for(5ms);
              promoted = steady::now();
          })
    {}
    ~failover_clock()
    {
        is_over = true;
        thread.join();
    }
    bool has_seen_it() const { return promoted.load() != steady::time_point{}; }
    std::atomic<bool> is_over{false};
    std::atomic<steady::time_point> gone{}, promoted{};
    std::thread thread;
};

void report(const load& l, steady::time_point gone, steady::time_point promoted)
{
    std::uint64_t before = 0, after = 0, lost = 0, limit = 0;
    for (const auto& each : l.askers) {
        before += each->before;
        after += each->after;
        lost += each->lost;
        limit += each->limit;
    }
    std::string troubles;
    for (std::size_t i = 1; i < l.troubles.size(); ++i)
        troubles += " " + std::string(name_of(static_cast<redis::trouble>(i))) + " " + std::to_string(l.troubles[i]);
    MESSAGE("fault to promotion ", ms(promoted - gone), " ms, promotion to the first success ",
            ms(l.first_success - promoted), " ms; admitted before ", before, ", after ", after, ", limits ", limit,
            ", writes lost ", lost, ", switches ", l.by.master->rounds().switches - 1, "; troubles:", troubles);
}

// Separates the replicas from the primary: its later writes are lost with it.
void cut_replicas_off(sentinel_group& group)
{
    REQUIRE(ask_server(group.primary, {"ACL", "SETUSER", "default", "-psync", "-sync"}) == "OK");
    REQUIRE(ask_server(group.primary, {"CLIENT", "KILL", "TYPE", "replica"}) == "2");
}

enum class replicas
{
    follow,
    cut_off
};

// The primary is lost under load, and the limits are reached on the next one. Returns how many writes were lost.
std::uint64_t check_failover(void (redis_server::*fault)(), replicas state = replicas::follow)
{
    sentinel_group group(2);
    sentinel_client c(group, 200ms);
    REQUIRE(c.becomes_ready());
    load l(c);
    l.begin();
    REQUIRE(c.loop.run_until([&] { return l.all_have(500); }, 10s));
    if (state == replicas::cut_off) {
        cut_replicas_off(group);
        REQUIRE(c.loop.run_until([&] { return l.all_have(600); }, 10s));
    }
    failover_clock clock(group, fault);
    const bool is_done = c.loop.run_until([&] { return l.has_ended(); }, 16s);
    l.is_over = true;
    CHECK_MESSAGE(is_done, "not all limits were reached again: ", c.master->why());
    CHECK(c.loop.run_until([&] { return l.has_ended() && clock.has_seen_it(); }, 2s));
    REQUIRE(l.first_success != steady::time_point{});
    report(l, clock.gone, clock.promoted);
    CHECK(l.first_success - clock.promoted.load() < 3s);
    CHECK_MESSAGE(c.loop.run_until([&] { return group.named_by_all() == c.port(); }, 10s), "sentinels name ",
                  group.named_by_all(), ", the client asks ", c.port());
    std::uint64_t lost = 0;
    for (const auto& each : l.askers) {
        CAPTURE(each->limit);
        CHECK(each->foreign == 0);
        CHECK(each->before + each->after <= each->limit + each->lost);
        lost += each->lost;
    }
    return lost;
}

} // namespace

TEST_CASE("redis sentinel: the primary killed under load: the next one takes over, and verdicts stay right")
{
    check_failover(&redis_server::stop);
}

TEST_CASE("redis sentinel: a primary that hangs under load is replaced by the next one, and verdicts stay right")
{
    check_failover(&redis_server::pause);
}

TEST_CASE("redis sentinel: writes that the next master does not have are admitted again, and no more than these")
{
    CHECK(check_failover(&redis_server::stop, replicas::cut_off) >= 16 * 50);
}
