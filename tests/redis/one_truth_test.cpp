// Compares two implementations: random rules and schedules through the memory store and through Redis's Lua, which must
// have equal results for every call. rapidcheck prints the seed of a failure; RC_PARAMS="seed=... max_success=..."
// repeats or widens a run.
#include "tests/limiter/memory_under_test.hpp"
#include "tests/redis/redis_under_test.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <memory>
#include <utility>

using namespace headgate::testing;

namespace {

bool one_in(int n) { return in_range(0, n) == 0; }

// A group may be overdrawn by corrections, or has long logs: when a log of the memory store grows it drops charges
// above its limit, which a log in Redis never does.
enum class choice
{
    all_rules,
    usual_rules // buckets and windows that enforce: the usual rules of take_each.lua
};

rule any_redis_rule(const std::string& name, bool overdrawn, bool clock_steps, choice from)
{
    // Requests in flight, the last algorithm, do not survive the restart by which the memory store's clock steps.
    const auto kinds = std::span(every_algorithm)
                           .first(from == choice::usual_rules ? 4 : std::size(every_algorithm) - (clock_steps ? 1 : 0));
    const auto kind = *rc::gen::elementOf(std::vector(kinds.begin(), kinds.end()));
    auto r = named(name, any_rule(kind));
    if (one_in(6) && kind != algorithm::concurrency) {
        const bool quick = one_in(2);
        r.count = kind == algorithm::sliding_log ? 3 : quick ? 1'000'000 : 1;
        r.period = quick ? microseconds{1s} : microseconds{24h * 30};
    }
    if (kind == algorithm::fixed_window && one_in(3)) {
        r.align = window_align::clock;
        r.calendar = *rc::gen::element(calendar_unit::day, calendar_unit::week, calendar_unit::month);
    }
    if (kind == algorithm::leaky_bucket && one_in(2))
        r.delay_after = in_range<std::uint64_t>(0, 4);
    while (redis::why_not_in_redis(r)) {
        r.capacity = std::max<std::uint64_t>(1, r.capacity / 1'000);
        r.initial = std::min(r.initial, r.capacity);
    }
    if (from == choice::usual_rules) {
        r.initial = r.capacity;
        return r;
    }
    r.shadow = one_in(5);
    r.count_refused = one_in(4);
    r.unlimited = one_in(8);
    if (kind == algorithm::sliding_log && overdrawn)
        r.count = 1 + r.count % 4;
    else if (kind == algorithm::sliding_log)
        r.unlimited = false;
    return r;
}

std::string text(const answer& a)
{
    std::ostringstream out;
    out << (a.admitted ? "admitted" : "refused") << (a.blocked ? " blocked" : "") << (a.shadow_refused ? " shadow" : "")
        << " retry " << a.retry_after.count() << " delay " << a.delay.count() << " at "
        << a.charged_at.time_since_epoch().count();
    for (const auto& d : a.decisions)
        out << "\n    " << d;
    return out.str();
}

// Beyond the range of Redis's numbers.
bool is_beyond(const answer& a)
{
    return std::any_of(a.decisions.begin(), a.decisions.end(),
                       [](const decision& d) { return d.reset_after.count() > std::int64_t{1} << 51; });
}

struct charged
{
    ask what;
    time_point at;
};

class twins
{
public:
    twins(bool wrong_guesses, choice from)
        : from_(from), overdrawn_(one_in(2)), clock_steps_(one_in(2)),
          groups_(from == choice::usual_rules ? 1 : in_range(1, 4)), now_(any_start())
    {
        in_redis_.wrong_guesses = wrong_guesses;
        in_redis_.in_company = one_in(2);
        for (int g = 0; g < groups_; ++g)
            define("g" + std::to_string(g));
    }

    // Returns false when a number is beyond the range of Redis's numbers.
    bool step_on(const step& s)
    {
        pause(s);
        if (clock_steps_ && s.act > 7)
            step_back(s);
        if (now_ > time_point{24h * 365 * 125})
            return false;
        forget_recovered();
        const auto wanted = a_chain(s);
        switch (s.act) {
        case 0:
            return compare("look", wanted, in_memory_->look(wanted, now_), in_redis_.look(wanted, now_));
        case 1:
        case 2:
            forget_recovered(); // a look or a correction may have evicted
            correct(s);
            forget_recovered();
            return compare("look", wanted, in_memory_->look(wanted, now_), in_redis_.look(wanted, now_));
        case 3:
            operate(s, wanted[0]);
            return compare("look", wanted, in_memory_->look(wanted, now_), in_redis_.look(wanted, now_));
        default:
            return take(wanted, now_);
        }
    }
    void check_ttls() { RC_ASSERT(in_redis_.key_for_ever() == ""); }

private:
    void define(const std::string& name)
    {
        auto& rules = rules_[name];
        for (int n = in_range(1, from_ == choice::usual_rules ? 3 : 4), i = 0; i < n; ++i) {
            rules.push_back(any_redis_rule("r" + std::to_string(i), overdrawn_, clock_steps_, from_));
            if (groups_ > 1) // one part of a chain may evict the recovered key of another while it is decided
                rules.back().initial = rules.back().capacity;
        }
        in_memory_->define(name, rules, now_);
        in_redis_.define(name, rules, now_);
    }

    void pause(const step& s)
    {
        const auto& rules = rules_.at("g" + std::to_string(s.size_by % rules_.size()));
        now_ = now_ + pause_before(s, rules[s.pace_by % rules.size()], wait_);
    }
    // The clock that decides steps back: that of Redis, and that of the machine between two starts of the gateway.
    void step_back(const step& s)
    {
        forget_recovered();
        const auto& rules = rules_.at("g" + std::to_string(s.size_by % rules_.size()));
        const auto to = now_ - clock_step(s, rules[s.pace_by % rules.size()]);
        auto restarted = std::make_unique<memory_under_test>(1'000);
        for (const auto& [group, its_rules] : rules_)
            restarted->define(group, its_rules, to);
        in_memory_->store.visit(0, [&](const key_table::entry& e, microseconds) {
            std::vector<std::uint64_t> words(e.words.begin(), e.words.end());
            const auto until = e.is_blocked() ? std::optional(e.blocked_until()) : std::nullopt;
            restarted->store.restore(*restarted->groups.at(e.group->name()),
                                     {e.group, e.header->level, words, e.key, until}, now_, to);
        });
        in_memory_ = std::move(restarted);
        const auto from = std::exchange(now_, to);
        for (const auto& [group, its_rules] : rules_) {
            for (const char* key : {"a", "b"}) {
                const auto bytes = in_redis_.value_of(group, key);
                if (bytes.empty())
                    continue;
                const auto& packed = in_redis_.packed(group);
                const auto name = redis_under_test::key_of(group, key);
                auto value = redis::decode(packed, bytes).value();
                value.last = from; // in Redis it is the moment of the last charge, not that of the step
                if (!in_memory_->inspect(group, key, now_)) {
                    redis::advance(packed, value, now_);
                    RC_ASSERT(redis::time_to_live(packed, value, now_) <= 10'001ms); // it has recovered
                    in_redis_.connection.call({"DEL", name});
                    continue;
                }
                in_redis_.connection.call({"SETRANGE", name, "0", redis::encode(packed, value)});
                const chain nothing{{group, key, std::vector<std::uint64_t>(its_rules.size())}};
                compare("step", nothing, in_memory_->take(nothing, now_), in_redis_.take(nothing, now_));
            }
        }
        forget_recovered();
    }

    // The memory store may evict recovered keys at any time, and they start with `initial` again. Redis's time to live
    // uses real time, which does not pass here, so recovered keys are deleted explicitly.
    void forget_recovered()
    {
        for (const auto& [group, _] : rules_) {
            for (const char* key : {"a", "b"}) {
                const auto bytes = in_redis_.value_of(group, key);
                if (bytes.empty() || in_memory_->inspect(group, key, now_))
                    continue;
                const auto value = redis::decode(in_redis_.packed(group), bytes).value();
                const auto keep = redis::time_to_live(in_redis_.packed(group), value, now_);
                RC_ASSERT(keep <= 10'001ms); // only the margin is left: it has recovered
                in_redis_.connection.call({"DEL", redis_under_test::key_of(group, key)});
            }
        }
    }

    chain a_chain(const step& s)
    {
        chain wanted;
        for (const auto& [group, rules] : rules_) {
            if (!wanted.empty() && s.size_by % 3 == 0)
                break;
            ask a{group, s.size_by % 5 == 0 ? "b" : "a", {}};
            const auto left = in_memory_->look({{group, a.key, std::vector<std::uint64_t>(rules.size())}}, now_);
            for (std::size_t i = 0; i < rules.size(); ++i) {
                const auto limit = rules[i].limit();
                const auto cost = cost_of(s, limit, left.decisions[i].remaining);
                a.costs.push_back(rules[i].unlimited ? std::min(cost, 3 * limit) : cost);
            }
            wanted.push_back(std::move(a));
        }
        return wanted;
    }

    bool take(const chain& wanted, time_point at)
    {
        const auto result = in_memory_->take(wanted, at);
        if (!compare("take", wanted, result, in_redis_.take(wanted, at)))
            return false;
        wait_ = result.retry_after;
        for (const auto& a : wanted) {
            if (result.admitted)
                charged_.push_back({a, result.charged_at});
        }
        return true;
    }

    void correct(const step& s)
    {
        if (charged_.empty())
            return;
        const auto [what, at] = charged_[s.size_by % charged_.size()];
        std::vector<std::uint64_t> actual;
        if (s.pace_by % 3 != 0) {
            for (std::size_t i = 0; i < what.costs.size(); ++i) {
                const auto up = overdrawn_ && s.size % 2 == 0 ? rules_.at(what.group)[i].limit() / 2 + 1 : 0;
                const auto most = std::min<std::uint64_t>(what.costs[i], std::uint64_t{1} << 50) + up;
                actual.push_back(s.pace_by % (most + 1));
            }
        }
        in_memory_->store.correct(in_memory_->parts_of({what})[0], actual, at, now_);
        if (actual.empty())
            in_redis_.give_back({what}, at, now_);
        else
            in_redis_.correct(what, actual, at, now_);
    }

    void operate(const step& s, const ask& a)
    {
        const auto n = std::uint64_t{s.size_by % 5};
        forget_recovered(); // a look may have evicted
        if (s.pace_by % 4 == 0) {
            RC_ASSERT(in_memory_->grant(a.group, a.key, n, now_) == in_redis_.grant(a.group, a.key, n, now_));
        } else if (s.pace_by % 4 == 1) {
            const auto until = now_ + microseconds{s.size_by % 3'000'000};
            RC_ASSERT(in_memory_->block(a.group, a.key, until, now_) == in_redis_.block(a.group, a.key, until, now_));
        } else if (s.pace_by % 4 == 2) {
            RC_ASSERT(in_memory_->unblock(a.group, a.key, now_) == in_redis_.unblock(a.group, a.key, now_));
        } else if (s.pace_by % 16 == 3) {
            RC_ASSERT(in_memory_->reset(a.group, a.key, now_) == in_redis_.reset(a.group, a.key, now_));
        }
    }

    bool compare(const char* what, const chain& wanted, const answer& memory, const answer& in_lua)
    {
        if (is_beyond(memory) || is_beyond(in_lua))
            return false;
        if (memory.admitted == in_lua.admitted && memory.blocked == in_lua.blocked &&
            memory.shadow_refused == in_lua.shadow_refused && memory.retry_after == in_lua.retry_after &&
            memory.delay == in_lua.delay && memory.charged_at == in_lua.charged_at &&
            memory.decisions == in_lua.decisions)
            return true;
        std::ostringstream out;
        for (const auto& a : wanted) {
            out << a.group << ' ' << a.key << '\n';
            for (std::size_t i = 0; i < a.costs.size(); ++i) {
                const auto& r = rules_.at(a.group)[i];
                out << "    cost " << a.costs[i] << (r.shadow ? " shadow" : "")
                    << (r.count_refused ? " count_refused" : "") << (r.unlimited ? " unlimited" : "") << ' ';
                showValue(r, out);
                out << '\n';
            }
        }
        out << what << " now " << now_.time_since_epoch().count() << "\nmemory " << text(memory) << "\nredis  "
            << text(in_lua);
        RC_FAIL(out.str());
        return false;
    }

    choice from_;
    bool overdrawn_;
    bool clock_steps_;
    int groups_;
    time_point now_;
    microseconds wait_{0};
    std::map<std::string, std::vector<rule>> rules_;
    std::vector<charged> charged_;
    std::unique_ptr<memory_under_test> in_memory_ = std::make_unique<memory_under_test>(1'000); // one shard
    redis_under_test in_redis_;
};

} // namespace

TEST_CASE("one truth: Redis's Lua and the memory store have equal results for every call")
{
    const auto the_same_answers = [](choice from) {
        twins both(one_in(4), from);
        for (const auto& s : any_schedule()) {
            if (!both.step_on(s))
                break;
        }
        both.check_ttls();
    };
    CHECK(rc::check("the same answers, all rules", [&] { the_same_answers(choice::all_rules); }));
    CHECK(rc::check("the same answers, usual rules", [&] { the_same_answers(choice::usual_rules); }));
}
