// Requests in flight in Redis when calls fail: random schedules of takes, ends and corrections, each of which may be
// done, not sent, done without a reply, or done later. Redis never counts fewer than are in flight, and at last exactly
// these.
#include "limiter/redis/slots_in_flight.hpp"
#include "tests/redis/redis_under_test.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace headgate::testing;
using redis::call_status;

namespace {

const auto noon = start + 5h;
const std::string key = "hg:1:{api:k}";
constexpr microseconds for_ever{24h * 365 * 100};
constexpr microseconds timeout{100};

enum class fate
{
    done,
    not_sent,
    lost,    // sent, never done, no reply
    unheard, // done, no reply
    late,    // done later, no reply
};

// What two workers do with one key.
class shared_key
{
public:
    shared_key()
        : take_script(with_test_clock(redis::take_script())), correct_script(with_test_clock(redis::correct_script()))
    {
        connection.call({"FLUSHALL"});
        for (const auto& text : {take_script.text, correct_script.text})
            connection.call({"SCRIPT", "LOAD", text});
        set_clock();
    }

    // Returns the reply; nothing when the caller gets none.
    std::optional<std::string> send(const std::string& command, fate to)
    {
        if (to == fate::late)
            late.push_back(command);
        if (to == fate::not_sent || to == fate::lost || to == fate::late)
            return std::nullopt;
        const auto reply = connection.call(command);
        REQUIRE(reply->type == REDIS_REPLY_STRING);
        return to == fate::done ? std::optional(std::string(reply->str, reply->len)) : std::nullopt;
    }
    void do_late(std::size_t which)
    {
        connection.call(late[which]);
        late.erase(late.begin() + static_cast<std::ptrdiff_t>(which));
    }
    void pass(microseconds time)
    {
        now = now + time;
        steady += std::chrono::milliseconds{400}; // a correction that failed is repeated in the next step
        set_clock();
    }
    std::uint64_t counted()
    {
        const auto bytes = connection.text({"GET", key});
        if (bytes.empty())
            return 0;
        std::uint64_t sum = 0;
        const auto value = redis::decode(rules->packed(), bytes).value();
        for (const auto& h : value.rules[0].holders)
            sum += h.count;
        return sum;
    }

    redis_connection connection{shared_server()};
    redis::script take_script, correct_script;
    std::shared_ptr<const redis::detached_rules> rules =
        std::make_shared<const redis::detached_rules>(std::vector<rule>{named("open", concurrency(4))});
    time_point now = noon;
    std::chrono::steady_clock::time_point steady{};
    std::vector<std::string> late;

private:
    void set_clock() { connection.call({"SET", "now", std::to_string(now.time_since_epoch().count())}); }
};

// Uses slots_in_flight as redis::store does.
struct worker
{
    worker(shared_key& with, std::uint64_t first) : on(with), slots(first) {}

    bool take(fate to)
    {
        const auto holder = slots.holder();
        const redis::chain_part part{&on.rules->packed(), key, {}};
        const redis::take_options how{.owner = {holder, for_ever}, .guess = on.now, .until = on.now + timeout};
        slots.begin(key, on.rules, on.steady);
        std::string command;
        append_take(command, {&part, 1}, how, redis::call_by::digest, on.take_script);
        const auto reply = on.send(command, to);
        slots.done(key, holder);
        if (!reply) {
            if (to != fate::not_sent)
                slots.doubt(key, holder, how.until, on.steady);
            return false;
        }
        verdict v;
        std::array<decision, max_decisions> decisions;
        REQUIRE(read_take(*reply, {&part, 1}, how, v, decisions).status == call_status::done);
        if (v.admitted) {
            slots.add(key, holder, on.rules->packed(), std::array<std::uint64_t, 1>{1});
            live.push_back(holder);
        }
        return v.admitted;
    }
    void end(std::size_t which, fate to)
    {
        const auto holder = live[which];
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
        const std::array<std::uint64_t, 1> one{1};
        REQUIRE(slots.remove(key, holder, on.rules->packed(), one, on.steady) == holder);
        if (holder != slots.holder())
            return slots.doubt(key, holder, {}, on.steady);
        slots.begin(key, on.rules, on.steady);
        const redis::correction c{&on.rules->packed(), key, {&on.rules->packed().rules(), "k", {}}, {}, on.now};
        const redis::correct_options how{.owner = {holder, for_ever}, .guess = on.now, .until = on.now + timeout};
        std::string command;
        append_correct(command, c, how, redis::call_by::digest, on.correct_script);
        const auto reply = on.send(command, to);
        slots.done(key, holder);
        if (!reply)
            slots.doubt(key, holder, how.until, on.steady);
        else
            REQUIRE(redis::read_correct(*reply).status == call_status::done);
    }
    void correct(fate to)
    {
        for (const auto& each : slots.take_doubtful(10, on.steady)) {
            std::string command;
            append_keep_at_most(command, each.rules->packed(), each.key, each.most, each.after,
                                {.owner = {each.holder, for_ever}, .guess = on.now}, redis::call_by::digest,
                                on.correct_script);
            const auto reply = on.send(command, to);
            slots.finished(each, reply && redis::read_correct(*reply).status == call_status::done, on.steady);
        }
    }

    shared_key& on;
    redis::slots_in_flight slots;
    std::vector<std::uint64_t> live; // the holder of each request in flight
};

fate any_fate(std::uint32_t by)
{
    constexpr fate all[] = {fate::done, fate::done, fate::done, fate::not_sent, fate::lost, fate::unheard, fate::late};
    return all[by % std::size(all)];
}

} // namespace

TEST_CASE("redis slots: whatever calls are lost, late or unheard, Redis counts all that is in flight, at last exactly")
{
    CHECK(rc::check("counts", [] {
        shared_key both;
        worker one(both, 1'000), two(both, 2'000);
        bool has_failed_over = false;
        std::string earlier;
        const auto live = [&] { return one.live.size() + two.live.size(); };
        for (const auto& s : any_schedule(60)) {
            auto& w = s.size % 2 == 0 ? one : two;
            const auto to = any_fate(s.size_by);
            if (s.act < 4) {
                const auto free_before = both.counted() < 4;
                const bool admitted = w.take(to);
                RC_ASSERT(!admitted || free_before);
            } else if (s.act < 6 && !w.live.empty()) {
                w.end(s.pace_by % w.live.size(), to);
            } else if (s.act < 8) {
                w.correct(to);
            } else if (s.act == 8 && !both.late.empty()) {
                both.do_late(s.pace_by % both.late.size());
            } else if (s.pace_by % 3 == 0) {
                earlier = both.connection.text({"GET", key});
            } else if (s.pace_by % 7 == 0 && !earlier.empty()) { // a server takes over that knows less
                both.connection.call({"SET", key, earlier});
                one.slots.doubt_all();
                two.slots.doubt_all();
                has_failed_over = true;
            }
            both.pass(microseconds{s.pace_by % 60});
            if (!has_failed_over)
                RC_ASSERT(both.counted() >= live());
        }
        // Redis answers again; a call of before may still come at any time.
        both.pass(2 * timeout);
        for (int i = 0; i < 10; ++i) {
            one.correct(fate::done);
            two.correct(fate::done);
            both.pass(microseconds{1});
            if (!both.late.empty())
                both.do_late(0);
        }
        while (!both.late.empty())
            both.do_late(0);
        RC_ASSERT(one.slots.doubtful() + two.slots.doubtful() == 0u);
        if (has_failed_over)
            RC_ASSERT(both.counted() <= live());
        else
            RC_ASSERT(both.counted() == live());
        while (live() > 0)
            (one.live.empty() ? two : one).end(0, fate::done);
        one.correct(fate::done);
        two.correct(fate::done);
        RC_ASSERT(both.counted() == 0u);
    }));
}

TEST_CASE("redis slots: the script and the arithmetic of limiter/redis keep the same slots")
{
    CHECK(rc::check("keep at most", [] {
        shared_key on;
        const redis::detached_rules all(
            {named("bucket", token_bucket(9, 60s, 9)), named("a", concurrency(9)), named("b", concurrency(9))});
        const auto& group = all.packed();
        auto value = redis::fresh_value(group, noon);
        for (std::size_t i = 1; i < group.size(); ++i) {
            for (std::uint64_t id = 1; id < 4; ++id) {
                if (in_range(0, 3) > 0)
                    value.rules[i].holders.push_back(
                        {id, in_range<std::uint64_t>(1, 6), noon + microseconds{in_range(-1, 3)}});
            }
        }
        for (int n = in_range(0, 4); n > 0; --n)
            value.reserved.push_back({in_range<std::uint64_t>(1, 9),
                                      noon + 1h,
                                      noon,
                                      in_range<std::uint64_t>(1, 4),
                                      {0, in_range<std::uint64_t>(0, 3), in_range<std::uint64_t>(0, 3)}});
        on.connection.call({"SET", key, encode(group, value)});
        const redis::holder of{in_range<std::uint64_t>(1, 5), 60s};
        const std::array<std::uint64_t, 3> most{0, in_range<std::uint64_t>(0, 7), in_range<std::uint64_t>(0, 7)};
        const auto after = noon + microseconds{in_range(-2, 2)};
        std::string command;
        append_keep_at_most(command, group, key, most, after, {.owner = of, .guess = noon}, redis::call_by::digest,
                            on.correct_script);
        const auto reply = on.connection.call(command);
        const auto status = redis::read_correct({reply->str, reply->len}).status;
        RC_ASSERT(status == (noon > after ? call_status::done : call_status::boundaries));
        auto by_script = redis::decode(group, on.connection.text({"GET", key})).value();
        advance(group, by_script, noon);
        advance(group, value, noon);
        if (noon > after)
            keep_slots(group, value, of, group, most);
        advance(group, value, noon);
        const auto sorted = [](std::vector<redis::held_slots> holders) {
            std::sort(holders.begin(), holders.end(), [](const auto& x, const auto& y) { return x.holder < y.holder; });
            return holders;
        };
        for (std::size_t i = 1; i < group.size(); ++i)
            RC_ASSERT((sorted(by_script.rules[i].holders) == sorted(value.rules[i].holders)));
        RC_ASSERT((by_script.reserved == value.reserved));
    }));
}

TEST_CASE("redis slots: a call that comes after its latest moment takes nothing and says so")
{
    shared_key on;
    worker w(on, 7);
    CHECK_FALSE(w.take(fate::late));
    on.pass(timeout + 1us);
    on.do_late(0);
    CHECK(on.counted() == 0);
    CHECK(w.take(fate::done));
    CHECK(w.slots.holder() == 8); // what was lost is not renewed by later requests
    w.end(0, fate::late);
    on.pass(timeout + 1us);
    on.do_late(0);
    CHECK(on.counted() == 1); // the end came too late: the count is corrected instead
    on.pass(1us);
    w.correct(fate::done);
    CHECK(on.counted() == 0);
}

TEST_CASE("redis slots: keys without requests are forgotten, others are not")
{
    const auto rules = std::make_shared<const redis::detached_rules>(std::vector<rule>{named("open", concurrency(4))});
    redis::slots_in_flight slots(1);
    std::chrono::steady_clock::time_point now{};
    const std::array<std::uint64_t, 1> one{1};
    for (const std::string k : {"a", "b"}) {
        slots.begin(k, rules, now);
        slots.done(k, 1);
        slots.add(k, 1, rules->packed(), one);
    }
    CHECK(slots.remove("a", 1, rules->packed(), one, now) == 1);
    slots.forget_unused(now);
    CHECK(slots.keys() == 2);
    slots.forget_unused(now + redis::slots_in_flight::kept_unused);
    CHECK(slots.keys() == 1);
    CHECK(slots.live("b") == 1);
    CHECK(slots.remove("a", 1, rules->packed(), one, now) == std::nullopt);

    // Other rules of the same key: counts are matched by name.
    const auto more = std::make_shared<const redis::detached_rules>(
        std::vector<rule>{named("new", concurrency(9)), named("open", concurrency(5))});
    slots.begin("b", more, now);
    slots.done("b", 1);
    CHECK(slots.live("b") == 1);
    slots.doubt_all();
    const auto jobs = slots.take_doubtful(10, now);
    REQUIRE(jobs.size() == 1);
    CHECK(jobs[0].most == redis::slots_in_flight::counts{0, 1});
    slots.finished(jobs[0], true, now);
    CHECK(slots.doubtful() == 0);
    CHECK(slots.remove("b", 1, rules->packed(), one, now) == 1);
    CHECK(slots.live("b") == 0);
}

TEST_CASE("redis slots: a clock that was set back delays a correction by half a minute at most")
{
    const auto rules = std::make_shared<const redis::detached_rules>(std::vector<rule>{named("open", concurrency(4))});
    redis::slots_in_flight slots(1);
    std::chrono::steady_clock::time_point now{};
    slots.begin("a", rules, now);
    slots.done("a", 1);
    slots.doubt("a", 1, noon + 240h, now);
    for (const auto wait : {0s, 29s, 30s}) {
        const auto jobs = slots.take_doubtful(10, now + wait);
        REQUIRE(jobs.size() == 1);
        CHECK(jobs[0].after == (wait < 30s ? noon + 240h : time_point{}));
        slots.finished(jobs[0], false, now + wait - 1s);
    }
}
