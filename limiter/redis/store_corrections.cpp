// Corrections of earlier charges, and the requests in flight. A correction that fails is repeated by maintain() until
// it is done.
//
// A correction of a charge sets a mark in Redis, a key of its own, so that a repetition after a lost reply changes
// nothing; when the first try is answered, the mark is deleted. Slots need no marks: slots_in_flight.hpp says why.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/store.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int most_rounds = 8;              // of one correction, before it fails
constexpr std::size_t most_at_once = 1'000; // repeated by one maintain()
constexpr std::size_t most_renewed = 250;   // by one maintain(): all at once could take longer than the timeout
constexpr milliseconds longest_pause{1'000}, until_connected{250};
// A correction that may be done is repeated only while its mark certainly lives (MARK_LIVES in correct.lua).
constexpr seconds mark_is_certain{100};
constexpr seconds renewed_every{15}, forgotten_every{1};

} // namespace

task<trouble> store::correct(std::shared_ptr<const void> keeps, const rule_group& group, const part& as_charged,
                             std::span<const std::uint64_t> actual, time_point charged_at, std::uint64_t holder)
{
    const auto rules = packed(group);
    std::string key;
    append_key(key, group.name(), as_charged.key, form_);
    auto failed = trouble::none;
    correction c{rules.get(), key, as_charged, actual, charged_at, correction::rules::in_flight};
    if (changes_something(c))
        failed = co_await end_slots(own_rules(group), c, holder);
    c.of = correction::rules::others;
    if (!changes_something(c))
        co_return failed;
    const auto now = turn_began();
    unfinished_correction what{.keeps = std::move(keeps),
                               .group = &group,
                               .charged_under = as_charged.group,
                               .key = std::string(as_charged.key),
                               .charged = {as_charged.costs.begin(), as_charged.costs.end()},
                               .actual = {actual.begin(), actual.end()},
                               .charged_at = charged_at,
                               .number = ++last_correction_,
                               .first_try = now};
    const auto charge_failed = co_await correct_charge(std::move(what));
    co_return charge_failed != trouble::none ? charge_failed : failed;
}

// Makes one correction, and repairs the key if necessary. A value that was written under other rules than those of the
// charge, perhaps by requests behind a reload, is corrected under its own: converted to older rules, it would lose what
// these cannot hold.
task<trouble> store::call_correct(std::uint16_t slot, const packed_group& rules, correction c, correct_options& how)
{
    const auto began = turn_began();
    std::shared_ptr<const detached_rules> under;
    for (int round = 0; round < most_rounds; ++round) {
        link::answer got;
        const auto write = [&](std::string& to, call_by by) { append_correct(to, c, how, by, *scripts_.correct); };
        const auto failed = co_await caller_->call(slot, began, write, got);
        if (failed != trouble::none)
            co_return failed;
        const auto result = read_correct(got.value().text());
        if (result.status == call_status::done)
            co_return trouble::none;
        const auto other = fingerprint_in(result.value);
        std::string value(result.value);
        if (result.status == call_status::other_rules && other) {
            std::shared_ptr<const detached_rules> found;
            const auto not_found = co_await find_rules(began, *other, found);
            if (not_found != trouble::none)
                co_return not_found;
            if (found) {
                under = std::move(found);
                c.group = &under->packed();
                continue;
            }
        }
        const auto mended =
            co_await mend(began, slot, rules, std::string(c.key), result, std::move(value), how.replace, how.guess);
        if (mended != trouble::none)
            co_return mended;
        if (result.status == call_status::boundaries)
            note_time(result.now);
        if (how.until != time_point::max())
            how.until = latest_call(how.guess);
    }
    co_return trouble::confused;
}

// ---- requests in flight

task<trouble> store::end_slots(std::shared_ptr<const detached_rules> own, correction c, std::uint64_t holder)
{
    auto& slots = state_->slots;
    const auto now = turn_began();
    const auto ended = slots_ended(c);
    const auto found = slots.remove(c.key, holder, *c.group, ended, now);
    const auto under = found.value_or(holder);
    if (under != slots.holder()) { // closed: maintain() corrects its count
        if (found)
            slots.doubt(c.key, under, {}, now);
        co_return trouble::none;
    }
    slots.begin(c.key, own, now, true);
    const auto guess = guess_time();
    correct_options how{.owner = {under, slot_lifetime_}, .guess = guess, .until = latest_call(guess)};
    const std::string key(c.key); // of the caller, like the rest
    const auto failed = co_await call_correct(slot_for(key), *c.group, c, how);
    slots.done(key, under);
    if (failed != trouble::none)
        slots.doubt(key, under, how.until, turn_began());
    co_return failed;
}

task<void> store::correct_count(slots_in_flight::job what, barrier& all)
{
    const bool is_done = co_await keep_at_most(what);
    if (!what.is_open)
        state_->slots.finished(what, is_done, turn_began());
    all.arrive();
}

// Returns false when it has to be repeated.
task<bool> store::keep_at_most(const slots_in_flight::job& what)
{
    const correct_options how{.owner = {what.holder, slot_lifetime_}, .guess = guess_time()};
    link::answer got;
    const auto write = [&](std::string& to, call_by by) {
        const auto& rules = what.rules->packed();
        if (what.is_open)
            append_renew(to, rules, what.key, how, by, *scripts_.correct);
        else
            append_keep_at_most(to, rules, what.key, what.most, what.after, how, by, *scripts_.correct);
    };
    const auto failed = co_await caller_->call(slot_for(what.key), turn_began(), write, got);
    if (failed != trouble::none)
        co_return false;
    const auto result = read_correct(got.value().text());
    if (result.status == call_status::other_rules)
        co_return co_await keep_at_most(what, std::string(result.value), result.now);
    // A foreign value has no slots.
    co_return result.status == call_status::done || result.status == call_status::foreign;
}

// The same for a value that was written under other rules, which stay as they are: the requests that are decided under
// the current ones convert it.
task<bool> store::keep_at_most(const slots_in_flight::job& what, std::string value, time_point now)
{
    const auto began = turn_began();
    std::shared_ptr<const detached_rules> under;
    if (const auto fingerprint = fingerprint_in(value)) {
        const auto failed = co_await find_rules(began, *fingerprint, under);
        if (failed != trouble::none)
            co_return false;
    }
    auto decoded = under ? decode(under->packed(), value) : std::nullopt;
    if (!decoded)
        co_return true; // the next decision replaces it
    advance(under->packed(), *decoded, now);
    if (!what.is_open && now <= what.after)
        co_return false;
    keep_slots(under->packed(), *decoded, {what.holder, slot_lifetime_}, what.rules->packed(),
               what.is_open ? std::span<const std::uint64_t>() : what.most);
    const auto after = encode(under->packed(), *decoded);
    const auto lifetime = time_to_live(under->packed(), *decoded, now);
    link::answer got;
    const auto write = [&](std::string& to, call_by by) { append_replace(to, what.key, value, after, lifetime, by); };
    const auto failed = co_await caller_->call(slot_for(what.key), began, write, got);
    co_return failed == trouble::none&& got.value().number() == 1;
}

// A server that took over may not know what its predecessor had confirmed: a request's end would be lost.
void store::notice_reconnection()
{
    const auto connected = links().seen().connected;
    if (std::exchange(connected_, connected) != connected)
        state_->slots.doubt_all();
}

// ---- charges

task<trouble> store::try_correction(unfinished_correction& what)
{
    const auto rules = packed(*what.group);
    std::string key;
    append_key(key, what.group->name(), what.key, form_);
    const auto mark = what.number == 0 ? std::string() : key + ':' + std::to_string(what.number);
    const correction c{rules.get(),
                       key,
                       {what.charged_under, what.key, what.charged},
                       what.actual,
                       what.charged_at,
                       correction::rules::others};
    correct_options how{.owner = owner(), .guess = what.charged_at, .mark = mark};
    const auto failed = co_await call_correct(slot_for(key), *rules, c, how);
    // After a repetition a call that was lost may still arrive: then the mark stays.
    if (failed == trouble::none && !mark.empty() && !what.may_be_done)
        co_await drop_mark(slot_for(key), mark);
    co_return failed;
}

// Without this each refused request whose earlier charges are given back would leave a key for MARK_LIVES.
task<void> store::drop_mark(std::uint16_t slot, std::string mark)
{
    link::answer got;
    const auto write = [&](std::string& to, call_by) { append_command(to, {"DEL", mark}); };
    [[maybe_unused]] const auto failed = co_await caller_->call(slot, turn_began(), write, got); // then it expires
}

task<trouble> store::correct_charge(unfinished_correction what)
{
    const auto failed = co_await try_correction(what);
    if (failed != trouble::none)
        keep_for_later(std::move(what), failed);
    co_return failed;
}

// While a slot of a cluster moves, a call with two keys may be refused with TRYAGAIN for as long as that takes. So the
// correction is repeated without its mark, as long as it is certain that it has not been done.
void store::keep_for_later(unfinished_correction what, trouble failed)
{
    const auto now = turn_began();
    what.may_be_done = what.may_be_done || may_be_done(failed);
    if (failed == trouble::refused && last_error() == error_class::try_again && !what.may_be_done)
        what.number = 0;
    const bool is_over = what.may_be_done && (what.number == 0 || now - what.first_try >= mark_is_certain);
    if (is_over || failed == trouble::malformed || state_->unfinished.size() >= most_unfinished) {
        ++caller_->seen.lost_corrections;
        return;
    }
    if (!what.may_be_done)
        what.first_try = now;
    what.next_try = now + what.pause;
    what.pause = std::min<std::chrono::microseconds>(2 * what.pause, longest_pause);
    state_->unfinished.push_back(std::move(what));
}

// Returns corrections that are due and whose server can be reached.
std::vector<unfinished_correction> store::take_unfinished()
{
    std::vector<unfinished_correction> due;
    const auto now = turn_began();
    std::string key;
    for (auto left = state_->unfinished.size(); left > 0 && due.size() < most_at_once; --left) {
        auto next = std::move(state_->unfinished.front());
        state_->unfinished.pop_front();
        if (next.may_be_done && now - next.first_try >= mark_is_certain) {
            ++caller_->seen.lost_corrections;
            continue;
        }
        if (next.next_try <= now) {
            key.clear();
            append_key(key, next.group->name(), next.key, form_);
            if (links().route_to(slot_for(key)).to->now() == link::state::ready) {
                due.push_back(std::move(next));
                continue;
            }
            next.next_try = now + until_connected;
        }
        state_->unfinished.push_back(std::move(next));
    }
    return due;
}

task<void> store::repeat_correction(unfinished_correction what, barrier& all)
{
    co_await correct_charge(std::move(what));
    all.arrive();
}

// ---- in time

task<void> store::maintain()
{
    auto& slots = state_->slots;
    const auto now = turn_began();
    notice_reconnection();
    if (now - forgot_ >= forgotten_every) {
        forgot_ = now;
        slots.forget_unused(now);
    }
    if (now - renewed_ >= renewed_every && to_renew_.empty()) {
        renewed_ = now;
        to_renew_ = slots.take_open();
    }
    auto counts = slots.take_doubtful(most_at_once, now);
    for (auto left = std::min(to_renew_.size(), most_renewed); left > 0; --left) {
        counts.push_back(std::move(to_renew_.back()));
        to_renew_.pop_back();
    }
    auto charges = take_unfinished();
    if (counts.empty() && charges.empty())
        co_return;
    repeated_now_ = counts.size() + charges.size();
    barrier all(repeated_now_);
    for (auto& each : counts)
        spawn_task(correct_count(std::move(each), all));
    for (auto& each : charges)
        spawn_task(repeat_correction(std::move(each), all));
    co_await all.wait();
    repeated_now_ = 0;
}

} // namespace headgate::limiter::redis
