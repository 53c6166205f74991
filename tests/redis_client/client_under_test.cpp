#include "tests/redis_client/client_under_test.hpp"

#include "limiter/redis/client/command.hpp"

#include <algorithm>
#include <stdexcept>

namespace headgate::testing {

client_loop::client_loop(const link_maker& make) : links(make(*this)) { links->begin(); }

client_loop::client_loop(redis::link_options options)
    : client_loop([&](client_loop& in) {
          in.link = std::make_shared<redis::link>(in.events, in.names, std::move(options), in.keep_told());
          return std::make_shared<redis::single_link>(in.link);
      })
{}

client_loop::~client_loop()
{
    links->stop();
    events.run(); // until every coroutine has ended
}

bool client_loop::run_until(const std::function<bool()>& done, std::chrono::milliseconds within)
{
    const auto end = std::chrono::steady_clock::now() + within;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end)
            return false;
        events.turn(std::chrono::milliseconds{10});
    }
    return true;
}

bool client_loop::run(task<void> work)
{
    bool done = false;
    const auto running = [](task<void> inner, bool& ended) -> task<void> {
        co_await std::move(inner);
        ended = true;
    };
    spawn(events.get_executor(), running(std::move(work), done));
    return run_until([&] { return done; });
}

namespace {

void append(std::string& to, const std::vector<std::string>& words)
{
    redis::append_count(to, words.size());
    for (const auto& word : words)
        redis::append_word(to, std::string_view(word));
}

} // namespace

std::string client_loop::ask(std::vector<std::string> words, std::string_view key)
{
    std::string result;
    const auto asking = [](client_loop& self, const std::vector<std::string>& all, std::uint16_t slot,
                           std::string& out) -> task<void> {
        redis::caller by(self.links);
        const auto write = [&](std::string& to, redis::call_by) { append(to, all); };
        redis::link::answer got;
        co_await by.call(slot, self.events.turn_began(), write, got);
        if (got.failed != redis::failure::none)
            out = "(" + std::string(name_of(got.failed)) + ")";
        else if (got.value().is_error())
            out = "-" + std::string(got.value().text());
        else if (got.value().is(redis::reply::kind::integer))
            out = ":" + std::to_string(got.value().number());
        else
            out = std::string(got.value().text());
    };
    run(asking(*this, words, redis::slot_of(key), result));
    return result;
}

void client_loop::ask_all(const std::vector<std::string>& words)
{
    const auto asking = [](client_loop& self, const std::vector<std::string>& all) -> task<void> {
        const auto servers = self.links->servers();
        const auto write = [&](std::string& to) { append(to, all); };
        for (const auto& each : servers)
            co_await each->ask(each->turn_began(), write);
    };
    run(asking(*this, words));
}

redis::link_options options_for(const redis_server& server)
{
    redis::link_options options;
    options.socket = server.socket_path();
    options.timeout = std::chrono::seconds{30}; // reached only by a failure
    return options;
}

redis_server& shared_server()
{
    static redis_server server;
    return server;
}

namespace {

// Returns the script with its clock in a key of the same slot.
redis::script with_test_clock(const redis::script& s)
{
    const std::string clock = "local time = redis.call('TIME') local now = time[1] * 1000000 + time[2]\n";
    auto text = s.text;
    const auto at = text.find(clock);
    if (at == text.npos)
        throw std::runtime_error("the script does not read the clock in the one line that tests know");
    text.replace(at, clock.size(), "local now = tonumber(redis.call('GET', 'now' .. string.match(KEYS[1], '{.*')))\n");
    return redis::script(text);
}

} // namespace

client_under_test::client_under_test(const link_maker& make)
    : loop_(make), take_(with_test_clock(redis::take_script())), take_each_(with_test_clock(redis::take_each_script())),
      correct_(with_test_clock(redis::correct_script())),
      store_(loop_.links, {7, std::chrono::hours{24 * 365 * 140}}, redis::key_form::plain_when_short,
             {&take_, &take_each_, &correct_, "now"})
{
    if (!loop_.run_until([&] { return loop_.is_ready(); }))
        throw std::runtime_error("no connection to redis-server: " + loop_.links->why());
    loop_.ask_all({"FLUSHALL"});
    loop_.ask_all({"SCRIPT", "FLUSH"}); // every test begins with NOSCRIPT
}

void client_under_test::must(task<redis::trouble> call)
{
    auto result = redis::trouble::confused;
    const auto running = [](task<redis::trouble> inner, redis::trouble& out) -> task<void> {
        out = co_await std::move(inner);
    };
    if (!loop_.run(running(std::move(call), result)))
        throw std::runtime_error("no answer");
    if (result != redis::trouble::none)
        throw std::runtime_error(std::string(name_of(result)) + ": " + std::string(name_of(store_.last_error())));
}

void client_under_test::set_clock(const std::string& group, const std::string& key, time_point now)
{
    std::string name;
    redis::append_key(name, group, key);
    const auto clock = "now" + name.substr(name.find('{'));
    loop_.ask({"SET", clock, std::to_string(now.time_since_epoch().count())}, clock);
}

void client_under_test::define(const std::string& group, std::vector<rule> rules, time_point)
{
    std::lock_guard guard(one_at_a_time_);
    auto to = std::make_shared<defined>();
    to->lineage.name = group;
    to->rules = std::make_unique<rule_group>(to->lineage, 0, std::move(rules));
    former_.push_back(to); // kept, so that no other group gets its address
    groups_[group] = to;
}

answer client_under_test::ask_for(const chain& wanted, time_point now, bool look)
{
    std::lock_guard guard(one_at_a_time_);
    std::vector<part> parts;
    for (const auto& a : wanted) {
        set_clock(a.group, a.key, now);
        parts.push_back({groups_.at(a.group)->rules.get(), a.key, a.costs});
    }
    std::vector<decision> result(max_decisions);
    verdict v;
    must(look ? store_.look(parts, result, v) : store_.take(parts, result, v));
    std::size_t n = 0;
    for (const auto& p : parts)
        n += p.group->size();
    result.resize(n);
    return {v.admitted,    v.blocked, v.blocked_part, v.shadow_refused,
            v.retry_after, v.delay,   v.charged_at,   std::move(result)};
}

void client_under_test::correct(const ask& wanted, const defined& under, const std::vector<std::uint64_t>& actual,
                                time_point charged_at, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    set_clock(wanted.group, wanted.key, now);
    must(store_.correct(nullptr, *groups_.at(wanted.group)->rules, {under.rules.get(), wanted.key, wanted.costs},
                        actual, charged_at));
}

void client_under_test::give_back(const chain& wanted, time_point charged_at, time_point now)
{
    for (const auto& a : wanted)
        correct(a, *groups_.at(a.group), {}, charged_at, now);
}

answer client_under_test::reserve(const chain& wanted, time_point now, reservation& id)
{
    std::lock_guard guard(one_at_a_time_);
    id = 0;
    auto result = take(wanted, now);
    if (!result.admitted)
        return result;
    held kept{wanted, {}, result.charged_at};
    for (const auto& a : wanted)
        kept.under.push_back(groups_.at(a.group));
    id = ++last_reservation_;
    reservations_.emplace(id, std::move(kept));
    return result;
}

bool client_under_test::settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    const auto found = reservations_.find(id);
    if (found == reservations_.end())
        return false;
    const auto kept = std::move(found->second);
    reservations_.erase(found);
    std::size_t from = 0;
    for (std::size_t i = 0; i < kept.wanted.size(); ++i) {
        const auto n = std::min(actual.size() - from, kept.under[i]->rules->size());
        const auto at = actual.begin() + static_cast<std::ptrdiff_t>(from);
        correct(kept.wanted[i], *kept.under[i], {at, at + static_cast<std::ptrdiff_t>(n)}, kept.charged_at, now);
        from += n;
    }
    return true;
}

std::uint64_t client_under_test::grant(const std::string& group, const std::string& key, std::uint64_t n,
                                       time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    if (!groups_.contains(group))
        return 0;
    set_clock(group, key, now);
    std::uint64_t most = 0;
    must(store_.grant(*groups_.at(group)->rules, key, n, most));
    return most;
}

bool client_under_test::reset(const std::string& group, const std::string& key, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    if (!groups_.contains(group))
        return false;
    set_clock(group, key, now);
    bool found = false;
    must(store_.reset(*groups_.at(group)->rules, key, found));
    return found;
}

bool client_under_test::block(const std::string& group, const std::string& key, time_point until, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    if (!groups_.contains(group))
        return false;
    set_clock(group, key, now);
    bool done = false;
    must(store_.block(*groups_.at(group)->rules, key, until - now, done));
    return done;
}

bool client_under_test::unblock(const std::string& group, const std::string& key, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    if (!groups_.contains(group))
        return false;
    set_clock(group, key, now);
    bool found = false;
    must(store_.unblock(*groups_.at(group)->rules, key, found));
    return found;
}

std::optional<key_report> client_under_test::inspect(const std::string& group, const std::string& key, time_point now)
{
    std::lock_guard guard(one_at_a_time_);
    std::optional<key_report> out;
    if (!groups_.contains(group))
        return out;
    set_clock(group, key, now);
    must(store_.inspect(*groups_.at(group)->rules, key, out));
    return out;
}

std::vector<key_report> client_under_test::list(const std::string& group, const std::string& prefix, time_point)
{
    std::lock_guard guard(one_at_a_time_);
    std::vector<key_report> out;
    if (!groups_.contains(group))
        return out;
    must(store_.list(*groups_.at(group)->rules, prefix, 1000, out)); // at the time of the keys' clocks
    return out;
}

} // namespace headgate::testing
