// Decides a chain whose keys are in several slots of a cluster, which no script can do in one step
// (docs/decisions/0008): every slot reserves its part at the same time; when all admit, the reservations are confirmed,
// otherwise given back.
// Reservations of a gateway that died before the second step lapse, and later calls give them back. The request does
// not wait for the second step, except where a refusal is counted.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/store.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

constexpr int most_rounds = 8; // of one decision, before it fails
constexpr microseconds pause_between_tries{50'000};

bool refusals_may_write(std::span<const chain_part> parts)
{
    return std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.group->refusals_may_write(); });
}

std::uint64_t cost_of(const chain_part& p, std::size_t rule) { return p.costs.empty() ? 1 : p.costs[rule]; }

} // namespace

struct store::slot_part
{
    std::uint16_t slot = 0;
    std::span<const chain_part> parts;
    std::span<const std::uint8_t> places; // their indexes in the chain
    take_options how;
    trouble failed = trouble::none;
    std::string reserved; // the reply to the reservation
    std::string counted;  // the reply to the counted refusal, if any

    bool may_have_reserved() const
    {
        return failed == trouble::none || failed == trouble::timeout || failed == trouble::broken;
    }
};

// One call with one key, in the background. It owns what it needs, because the rules may be gone by then.
struct store::follow_up
{
    const script* calls = nullptr;
    std::uint16_t slot = 0;
    std::string key, argument;
};

std::uint64_t store::next_reservation()
{
    last_reservation_ = (last_reservation_ + 1) % (std::uint64_t{1} << 52);
    return last_reservation_ + 1;
}

task<trouble> store::ask_groups(question& q, const slot_groups& groups, std::span<decision> decisions, verdict& out)
{
    ++caller_->seen.split_chains;
    if (!q.how.look)
        q.how.reserve = {next_reservation(), reservation_lifetime};
    std::array<chain_part, max_parts> by_slot;
    for (std::size_t i = 0; i < q.count; ++i)
        by_slot[i] = q.parts[groups.order[i]];
    std::array<slot_part, max_parts> room;
    const auto slots = std::span(room).first(groups.count);
    barrier all(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto& from = groups.all[i];
        slots[i].slot = from.slot;
        slots[i].parts = std::span(by_slot).subspan(from.first, from.count);
        slots[i].places = groups.places(from);
        slots[i].how = q.how;
    }
    for (auto& each : slots)
        spawn_task(ask_slot(q, each, all));
    co_await all.wait();

    auto failed = trouble::none;
    for (const auto& each : slots)
        failed = failed == trouble::none ? each.failed : failed;
    if (failed == trouble::none) {
        const auto read = read_all(slots, false, q.how, out, decisions);
        caller_->seen.disagreements += read.status == call_status::disagreement ? 1 : 0;
        failed = read.status == call_status::done ? trouble::none : trouble::malformed;
    }
    if (q.how.look)
        co_return failed;
    if (failed == trouble::none && out.admitted) {
        for (const auto& each : slots)
            confirm(q, each, decisions);
        co_return trouble::none;
    }
    const bool counts = failed == trouble::none && !out.blocked;
    for (const auto& each : slots) {
        if (counts && refusals_may_write(each.parts))
            continue; // count_refusal does it
        for (auto& refund : refunds_of(q, each))
            spawn_task(follow(caller_, std::move(refund)));
        if (out.blocked && failed == trouble::none)
            remember_start(each);
    }
    if (counts)
        co_await count_refusal(q, slots, decisions, out);
    co_return failed;
}

// ---- the first step

task<void> store::ask_slot(question& q, slot_part& of, barrier& all)
{
    of.failed = co_await ask_slot_now(q, of);
    all.arrive();
}

task<trouble> store::ask_slot_now(question& q, slot_part& of)
{
    for (int round = 0; round < most_rounds; ++round) {
        link::answer got;
        const auto write = [&](std::string& to, call_by by) { append_take(to, of.parts, of.how, by, *scripts_.take); };
        const auto failed = co_await caller_->call(of.slot, q.began, write, got);
        if (failed != trouble::none)
            co_return failed;
        const auto text = got.value().text();
        const auto result = read_status(text, of.parts.size());
        note_time(result.now);
        if (result.status == call_status::done) {
            (of.how.refused ? of.counted : of.reserved) = text;
            co_return trouble::none;
        }
        const auto mended =
            co_await mend(q.began, of.slot, *of.parts[result.part].group, std::string(of.parts[result.part].key),
                          result, std::string(result.value), of.how.replace, of.how.guess);
        if (mended != trouble::none)
            co_return mended;
        of.how.until = latest_for(q, of.how.guess);
    }
    co_return trouble::confused;
}

call_answer store::read_all(std::span<const slot_part> of, bool counted, const take_options& how, verdict& out,
                            std::span<decision> decisions)
{
    std::array<partial_reply, max_parts> replies;
    for (std::size_t i = 0; i < of.size(); ++i)
        replies[i] = {of[i].parts, of[i].places, of[i].counted.empty() ? of[i].reserved : of[i].counted};
    const auto all = std::span<const partial_reply>(replies).first(of.size());
    return counted ? read_counted(all, out, decisions) : read_take(all, how, out, decisions);
}

// ---- the second step

// Confirms the reservations of a slot, and counts what shadow rules with count_refused would have refused: the
// reservation did not count it.
void store::confirm(const question& q, const slot_part& of, std::span<const decision> decisions)
{
    std::array<std::size_t, max_parts> first{};
    for (std::size_t p = 1; p < q.count; ++p)
        first[p] = first[p - 1] + q.parts[p - 1].group->size();
    const correct_options ends{.owner = q.how.owner, .reservation = q.how.reserve.id};
    for (std::size_t k = 0; k < of.parts.size(); ++k) {
        const auto& p = of.parts[k];
        spawn_task(follow(caller_, {scripts_.correct, of.slot, std::string(p.key), commit_argument(*p.group, ends)}));
        std::array<std::uint64_t, max_rules_per_group> costs{};
        bool counts = false;
        for (std::size_t i = 0; i < p.group->size(); ++i) {
            const auto& r = p.group->limits(i).limits;
            if (!r.shadow || !r.count_refused || decisions[first[of.places[k]] + i].admitted)
                continue;
            costs[i] = cost_of(p, i);
            counts = true;
        }
        if (counts)
            count_later(of, p, costs);
    }
}

// Counts a refusal of these costs in the background.
void store::count_later(const slot_part& of, const chain_part& p, std::span<const std::uint64_t> costs)
{
    auto how = of.how;
    how.reserve = {};
    how.refused = true;
    how.until = time_point::max();
    const chain_part refused{p.group, p.key, costs.first(p.group->size())};
    spawn_task(follow(caller_, {scripts_.take, of.slot, std::string(p.key), take_argument(refused, how)}));
}

// Stores the start of keys in a chain that an operator has blocked: their initial tokens count from this request on.
void store::remember_start(const slot_part& of)
{
    constexpr std::array<std::uint64_t, max_rules_per_group> nothing{};
    for (const auto& p : of.parts) {
        if (p.group->refusals_may_write())
            count_later(of, p, nothing);
    }
}

// Returns the calls that give back what the slot has reserved. Where no reply came, Redis may not have made the
// reservation; then the calls change nothing.
std::vector<store::follow_up> store::refunds_of(const question& q, const slot_part& of) const
{
    std::vector<follow_up> all;
    std::array<decision, max_decisions> decisions;
    verdict taken;
    const bool is_known =
        !of.reserved.empty() && read_take(of.reserved, of.parts, of.how, taken, decisions).status == call_status::done;
    if (!of.may_have_reserved() || (is_known && !taken.admitted))
        return all;
    const auto charged_at = is_known ? taken.charged_at : q.how.guess;
    const correct_options how{.owner = q.how.owner, .guess = charged_at, .reservation = q.how.reserve.id};
    std::size_t at = 0;
    for (const auto& p : of.parts) {
        std::array<std::uint64_t, max_rules_per_group> costs{};
        for (std::size_t i = 0; i < p.group->size(); ++i, ++at) {
            const bool was_charged = is_known ? decisions[at].admitted : !p.group->limits(i).limits.shadow;
            costs[i] = was_charged ? cost_of(p, i) : 0;
        }
        const part charged{&p.group->rules(), {}, std::span(costs).first(p.group->size())};
        const correction c{p.group, p.key, charged, {}, charged_at};
        all.push_back({scripts_.correct, of.slot, std::string(p.key), correct_argument(c, how)});
    }
    return all;
}

// Counts the refusal by the rules with count_refused of every slot.
task<void> store::count_refusal(question& q, std::span<slot_part> of, std::span<decision> decisions, verdict& out)
{
    std::size_t counting = 0;
    for (const auto& each : of)
        counting += refusals_may_write(each.parts) ? 1u : 0u;
    if (counting == 0)
        co_return;
    barrier all(counting);
    for (auto& each : of) {
        if (refusals_may_write(each.parts))
            spawn_task(count_in_slot(q, each, all));
    }
    co_await all.wait();
    read_all(of, true, q.how, out, decisions);
}

// Gives the reservation back, then counts the refusal. When the first step fails, the reply to the reservation is used.
task<void> store::count_in_slot(question& q, slot_part& of, barrier& all)
{
    auto refunds = refunds_of(q, of);
    bool is_given_back = true;
    for (auto& each : refunds) {
        const auto failed = co_await try_once(*caller_, q.began, each);
        is_given_back = is_given_back && failed == trouble::none;
        if (failed != trouble::none)
            spawn_task(follow(caller_, std::move(each)));
    }
    of.how.reserve = {};
    of.how.refused = true;
    if (is_given_back)
        of.failed = co_await ask_slot_now(q, of);
    all.arrive();
}

// Makes the call once. Returns `malformed` when another try cannot succeed.
task<trouble> store::try_once(caller& by, steady_time began, const follow_up& what)
{
    const auto write = [&](std::string& out, call_by how) {
        append_call(out, *what.calls, how, what.key, what.argument);
    };
    link::answer got;
    const auto failed = co_await by.call(what.slot, began, write, got);
    if (failed != trouble::none)
        co_return failed;
    co_return read_status(got.value().text(), 1).status == call_status::done ? trouble::none : trouble::malformed;
}

// Repeats the call until half of the reservation's lifetime is over: after that it might be confirmed on one server and
// given back already on another.
task<void> store::follow(std::shared_ptr<caller> by, follow_up what)
{
    const auto until = by->turn_began() + reservation_lifetime / 2;
    for (;;) {
        const auto failed = co_await try_once(*by, by->turn_began(), what);
        if (failed == trouble::none)
            co_return;
        if (failed == trouble::malformed)
            break;
        co_await by->links().pause(pause_between_tries);
        if (by->links().now() == link::state::stopped || by->turn_began() >= until)
            break;
    }
    ++by->seen.lost_outcomes;
}

} // namespace headgate::limiter::redis
