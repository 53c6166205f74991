#include "limiter/redis/store.hpp"

#include "limiter/redis/client/command.hpp"
#include "limiter/redis/fingerprint.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace headgate::limiter::redis {

namespace {

constexpr int most_rounds = 8; // of one decision, before it fails
constexpr microseconds one_second{1'000'000};
constexpr std::string_view rules_lifetime = "34560000"; // 400 days: longer than values under these rules live

} // namespace

class store::spare_text
{
public:
    explicit spare_text(std::vector<std::string>& from) : from_(from)
    {
        if (from_.empty())
            return;
        text = std::move(from_.back());
        from_.pop_back();
        text.clear();
    }
    ~spare_text() { from_.push_back(std::move(text)); }
    spare_text(const spare_text&) = delete;
    spare_text& operator=(const spare_text&) = delete;

    std::string text;

private:
    std::vector<std::string>& from_;
};

store::store(std::shared_ptr<link_source> links, holder owner, key_form form, script_set scripts,
             std::shared_ptr<store_state> state)
    : caller_(std::make_shared<caller>(std::move(links))),
      state_(state ? std::move(state) : std::make_shared<store_state>(owner.id)), slot_lifetime_(owner.lifetime),
      form_(form), scripts_(std::move(scripts))
{
    together_ = std::make_shared<take_together>(caller_, *scripts_.take_each);
    std::random_device random;
    const auto any = [&] { return (std::uint64_t{random()} << 32 | random()) >> 12; };
    last_reservation_ = any();
    last_correction_ = any();
}

store::~store() = default;

store::shared_rules store::packed(const rule_group& group)
{
    auto& known = packed_[&group];
    if (!known.rules) {
        known.rules = std::make_shared<const packed_group>(group);
        known.rules_slot = slot_for(rules_key(known.rules->fingerprint()));
    }
    publish(known);
    return known.rules;
}

// Stores the rules in Redis, so that a gateway with other rules can convert a value that was written under these. Once
// per connection: Redis may have lost its data in between.
void store::publish(known_rules& known)
{
    const auto way = links().route_to(known.rules_slot);
    const std::pair connection(way.number, way.to->seen().connected);
    if (known.published == connection || way.to->now() != link::state::ready)
        return;
    known.published = connection;
    spawn_task(
        publish_later(caller_, known.rules_slot, rules_key(known.rules->fingerprint()), known.rules->description()));
}

task<void> store::publish_later(std::shared_ptr<caller> by, std::uint16_t slot, std::string key,
                                std::string description)
{
    link::answer got;
    const auto write = [&](std::string& out, call_by) {
        append_command(out, {"SET", key, description, "EX", rules_lifetime});
    };
    co_await by->call(slot, by->turn_began(), write, got);
}

// ---- Redis's time, from its last reply

void store::note_time(time_point now)
{
    redis_time_ = now;
    redis_time_at_ = turn_began();
}

time_point store::guess_time()
{
    if (redis_time_ == time_point{})
        return std::chrono::time_point_cast<microseconds>(std::chrono::system_clock::now());
    return redis_time_ + std::chrono::duration_cast<microseconds>(turn_began() - redis_time_at_);
}

// The latest moment for a call that begins now. One that comes later is repeated with a later moment, if something
// still waits for its reply. The sooner this is over, the sooner lost slots are free. Before the first reply the time
// is not known: then no moment is early enough, and the reply tells the time.
time_point store::latest_call(time_point guess)
{
    return knows_time() ? guess + std::min<microseconds>(caller_->timeout(), one_second) + one_second : time_point{};
}

time_point store::latest_for(const question& q, time_point guess)
{
    return q.takes_slots ? latest_call(guess) : time_point::max();
}

// ---- a chain

task<trouble> store::ask_chain(std::span<const part> parts, bool look, std::span<decision> decisions, verdict& out,
                               steady_time began)
{
    question q;
    q.began = began;
    q.count = parts.size();
    q.how.look = look;
    q.how.owner = owner();
    q.how.guess = guess_time();
    std::array<std::size_t, max_parts + 1> ends{};
    spare_text keys(spare_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        q.rules[i] = packed(*parts[i].group);
        q.takes_slots = q.takes_slots || (q.rules[i]->has_slots() && !look);
        append_key(keys.text, parts[i].group->name(), parts[i].key, form_);
        ends[i + 1] = keys.text.size();
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto key = std::string_view(keys.text).substr(ends[i], ends[i + 1] - ends[i]);
        q.parts[i] = {q.rules[i].get(), key, parts[i].costs};
        out.groups[i] = parts[i].group;
    }
    out.holder = q.how.owner.id;
    q.how.until = latest_for(q, q.how.guess);
    if (q.takes_slots)
        begin_slots(q);
    const auto failed = co_await decide(q, decisions, out);
    if (q.takes_slots)
        note_slots(q, failed, out, decisions);
    co_return failed;
}

task<trouble> store::decide(question& q, std::span<decision> decisions, verdict& out)
{
    std::uint16_t slot = 0;
    if (links().spreads_keys()) {
        slot_groups groups;
        groups.find(q.count, [&](std::size_t i) { return q.parts[i].key; });
        if (groups.count > 1) {
            const auto failed = co_await ask_groups(q, groups, decisions, out);
            co_return failed;
        }
        slot = groups.all[0].slot;
    }
    if (can_join_batch(q, slot)) {
        take_together::question joined(slot, q.began, q.parts[0], q.how);
        together_->join(joined);
        co_await joined.wait();
        if (joined.leads())
            co_await together_->call_for_all(joined);
        if (joined.failed != trouble::none)
            co_return joined.failed;
        const auto result = read_take(joined.reply_text, q.all(), q.how, out, decisions);
        note_time(result.now);
        if (result.status == call_status::done)
            co_return trouble::none;
        if (result.status == call_status::boundaries)
            q.how.guess = result.now;
        else if (result.status != call_status::unusual)
            co_return unexplained(result.status);
    }
    for (int round = 0; round < most_rounds; ++round) {
        link::answer got;
        const auto write = [&](std::string& to, call_by by) { append_take(to, q.all(), q.how, by, *scripts_.take); };
        const auto failed = co_await caller_->call(slot, q.began, write, got);
        if (failed != trouble::none)
            co_return failed;
        const auto result = read_take(got.value().text(), q.all(), q.how, out, decisions);
        note_time(result.now);
        if (result.status == call_status::done)
            co_return trouble::none;
        const auto mended = co_await mend(q.began, slot, *q.rules[result.part], std::string(q.parts[result.part].key),
                                          result, std::string(result.value), q.how.replace, q.how.guess);
        if (mended != trouble::none)
            co_return mended;
        q.how.until = latest_for(q, q.how.guess);
    }
    co_return trouble::confused;
}

std::shared_ptr<const detached_rules> store::own_rules(const rule_group& group)
{
    packed(group);
    auto& known = packed_[&group];
    if (!known.own) {
        std::vector<rule> rules;
        for (const auto& m : group.members())
            rules.push_back(m.limits.limits);
        known.own = std::make_shared<const detached_rules>(std::move(rules));
    }
    return known.own;
}

void store::begin_slots(const question& q)
{
    for (const auto& p : q.all()) {
        if (p.group->has_slots())
            state_->slots.begin(p.key, own_rules(p.group->rules()), turn_began());
    }
}

// A call without a reply may have taken slots, or may still take them. A reservation is given back by itself.
void store::note_slots(const question& q, trouble failed, const verdict& out, std::span<const decision> decisions)
{
    auto& slots = state_->slots;
    for (const auto& p : q.all()) {
        const auto of_part = decisions.first(p.group->size());
        decisions = decisions.subspan(p.group->size());
        if (!p.group->has_slots())
            continue;
        slots.done(p.key, q.how.owner.id);
        if (may_be_done(failed) && q.how.reserve.id == 0)
            slots.doubt(p.key, q.how.owner.id, q.how.until, turn_began());
        if (failed != trouble::none || !out.admitted)
            continue;
        std::array<std::uint64_t, max_rules_per_group> taken{};
        for (std::size_t i = 0; i < of_part.size(); ++i)
            taken[i] = !of_part[i].admitted ? 0 : p.costs.empty() ? 1 : p.costs[i];
        slots.add(p.key, q.how.owner.id, *p.group, taken);
    }
}

// A request does not wait for the end of the turn when its server cannot be reached.
bool store::can_join_batch(const question& q, std::uint16_t slot)
{
    return is_usual(q.all(), q.how) && links().route_to(slot).to->now() == link::state::ready;
}

trouble store::unexplained(call_status status)
{
    caller_->seen.disagreements += status == call_status::disagreement ? 1 : 0;
    return trouble::malformed;
}

task<trouble> store::mend(steady_time began, std::uint16_t slot, const packed_group& rules, std::string key,
                          call_answer result, std::string value, bool& replace, time_point& guess)
{
    bool known = true;
    trouble carried = trouble::none;
    switch (result.status) {
    case call_status::done:
        break;
    case call_status::boundaries:
        guess = result.now;
        break;
    case call_status::other_rules:
    case call_status::lapsed:
        carried = co_await carry_over(began, slot, rules, std::move(key), std::move(value), result.now, known);
        replace = !known;
        break;
    case call_status::foreign:
        ++caller_->seen.foreign;
        replace = true;
        break;
    case call_status::unusual:
    case call_status::disagreement:
    case call_status::malformed:
        co_return unexplained(result.status);
    }
    co_return carried;
}

// ---- other rules

task<trouble> store::find_rules(steady_time began, std::uint64_t fingerprint,
                                std::shared_ptr<const detached_rules>& out)
{
    if (const auto known = other_rules_.find(fingerprint); known != other_rules_.end()) {
        out = known->second;
        co_return trouble::none;
    }
    const auto key = rules_key(fingerprint);
    link::answer got;
    const auto write = [&](std::string& to, call_by) { append_command(to, {"GET", key}); };
    const auto failed = co_await caller_->call(slot_for(key), began, write, got);
    if (failed != trouble::none)
        co_return failed;
    auto rules = parse_rules(got.value().text());
    if (!rules)
        co_return trouble::none; // the rules are lost
    out = std::make_shared<const detached_rules>(std::move(*rules));
    if (other_rules_.size() >= 1000)
        other_rules_.clear();
    other_rules_[fingerprint] = out;
    co_return trouble::none;
}

// Converts the key's counters to the current rules, and gives back reservations that have lapsed. When another gateway
// did it first, the repeated call finds its result. `known` becomes false when the rules that the value was written
// under are lost, so that nothing can be converted.
task<trouble> store::carry_over(steady_time began, std::uint16_t slot, const packed_group& to, std::string key,
                                std::string value, time_point now, bool& known)
{
    const auto fingerprint = fingerprint_in(value);
    const bool is_same = fingerprint == to.fingerprint();
    std::shared_ptr<const detached_rules> from;
    if (fingerprint && !is_same) {
        const auto failed = co_await find_rules(began, *fingerprint, from);
        if (failed != trouble::none)
            co_return failed;
    }
    const auto* const under = is_same ? &to : from ? &from->packed() : nullptr;
    auto old = under ? decode(*under, value) : std::nullopt;
    known = old.has_value();
    if (!known) {
        ++caller_->seen.lost_rules;
        co_return trouble::none;
    }
    const auto reserved = old->reserved.size();
    advance(*under, *old, now);
    caller_->seen.lapsed += reserved - old->reserved.size();
    caller_->seen.conversions += is_same ? 0 : 1;
    const auto next =
        is_same ? std::move(*old) : convert_value(*under, *old, to, now, how_to_carry(*fingerprint, to.rules()));
    const auto after = encode(to, next);
    const auto lifetime = time_to_live(to, next, now);
    link::answer got;
    const auto write = [&](std::string& out, call_by by) { append_replace(out, key, value, after, lifetime, by); };
    const auto failed = co_await caller_->call(slot, began, write, got);
    co_return failed;
}

} // namespace headgate::limiter::redis
