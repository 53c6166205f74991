#include "limiter/redis/correct_call.hpp"

#include "limiter/core/calendar.hpp"
#include "limiter/memory/memory_store_parts.hpp"
#include "limiter/redis/call_reply.hpp"
#include "limiter/redis/client/command.hpp"

#include <algorithm>
#include <array>

namespace headgate::limiter::redis {

namespace {

constexpr std::size_t most_bytes = 3 + max_rules_per_group + number_bytes * (3 + 5 * max_rules_per_group);

// The change of a rule's charge.
struct change
{
    enum class manner : unsigned
    {
        more = 1,
        less = 2,
        at_most = 3
    };
    manner how = manner::less;
    std::uint64_t by = 0;
};

// Returns whether only one of the two rules counts requests in flight: when a rule changes between a rate and a
// concurrency limit, there is nothing to correct.
bool was_another_kind(const rule_group& charged_under, const rule& now)
{
    for (const auto& m : charged_under.members()) {
        if (m.limits.limits.name == now.name)
            return (m.limits.limits.kind == algorithm::concurrency) != (now.kind == algorithm::concurrency);
    }
    return false;
}

change change_of(const correction& c, std::size_t i)
{
    const auto& judging = c.group->rules();
    if (c.of != correction::rules::all &&
        (c.group->kind(i) == script_kind::in_flight) != (c.of == correction::rules::in_flight))
        return {};
    const part settled{c.as_charged.group, c.as_charged.key, c.actual};
    const auto charged = cost_of(c.as_charged, judging, i);
    const auto actual = c.actual.empty() ? 0 : std::min(cost_of(settled, judging, i), max_count);
    if (was_another_kind(*c.as_charged.group, judging.members()[i].limits.limits))
        return {};
    return actual > charged ? change{change::manner::more, actual - charged}
                            : change{change::manner::less, charged - actual};
}

unsigned kind_byte(const packed_group& group, std::size_t i, const change& to)
{
    const bool changes = to.by > 0 || to.how == change::manner::at_most;
    const unsigned how =
        (changes ? static_cast<unsigned>(to.how) : 0u) | (starts_with_less(group.limits(i).limits) ? 8u : 0u);
    return static_cast<unsigned>(group.kind(i)) + 8 * how;
}

void write_rule(number_writer& out, const packed_group& group, std::size_t i, std::uint64_t by, time_point charged_at,
                const correct_options& how)
{
    const auto& m = group.limits(i);
    const auto& r = m.limits;
    const auto period = static_cast<std::uint64_t>(r.period.count());
    switch (group.kind(i)) {
    case script_kind::bucket: {
        out.number(m.ticks_per_us);
        const auto write_pair = [&](bucket_time t) { out.number(t.us), out.number(t.rest); };
        write_pair(split(m, ticks_of(m, by)));
        if (starts_with_less(r))
            write_pair(split(m, ticks_of(m, r.capacity - r.initial)));
        break;
    }
    case script_kind::clock_window:
    case script_kind::first_call_window:
        out.number(by);
        out.number(to_number(window_end(r, charged_at)));
        out.number(period);
        break;
    case script_kind::calendar_window: {
        out.number(by);
        out.number(to_number(window_end(r, charged_at)));
        const auto& windows = group.windows_around(i, how.guess);
        for (const auto t : {windows.start, windows.end, windows.next_end})
            out.number(to_number(t));
        break;
    }
    case script_kind::sliding_window:
        out.number(by);
        out.number(period);
        break;
    case script_kind::sliding_log:
        out.number(by);
        out.number(period);
        out.number(r.count);
        break;
    case script_kind::in_flight:
        out.number(by);
        out.number(how.owner.id);
        out.number(to_number(how.owner.lifetime));
        out.number(to_number(how.until));
        break;
    }
}

using argument_room = std::array<char, most_bytes>;

std::string_view write_argument(argument_room& room, const packed_group& group, std::span<const change> changes,
                                time_point charged_at, const correct_options& how)
{
    number_writer to(room.data());
    to.byte((how.replace ? 2u : 0u) | (how.reservation != 0 ? 4u : 0u) | (group.has_tails() ? 8u : 0u));
    to.byte(static_cast<unsigned>(group.size()));
    to.byte(static_cast<unsigned>(group.numbers()));
    for (std::size_t i = 0; i < group.size(); ++i)
        to.byte(kind_byte(group, i, changes[i]));
    to.number(group.fingerprint());
    to.number(to_number(charged_at));
    if (how.reservation != 0)
        to.number(how.reservation);
    for (std::size_t i = 0; i < group.size(); ++i)
        write_rule(to, group, i, changes[i].by, charged_at, how);
    return {room.data(), static_cast<std::size_t>(to.end() - room.data())};
}

std::string_view write_argument(argument_room& room, const correction& c, const correct_options& how)
{
    std::array<change, max_rules_per_group> changes;
    for (std::size_t i = 0; i < c.group->size(); ++i)
        changes[i] = change_of(c, i);
    return write_argument(room, *c.group, changes, c.charged_at, how);
}

constexpr std::array<change, max_rules_per_group> no_changes{};

void append_argument(std::string& out, std::string_view key, std::string_view argument, const correct_options& how,
                     call_by by, const script& s)
{
    if (how.mark.empty())
        return append_call(out, s, by, key, argument);
    append_call(out, s, by, 2, 1);
    append_word(out, key);
    append_word(out, how.mark);
    append_word(out, argument);
}

} // namespace

std::array<std::uint64_t, max_rules_per_group> slots_ended(const correction& c)
{
    std::array<std::uint64_t, max_rules_per_group> ended{};
    for (std::size_t i = 0; i < c.group->size(); ++i) {
        const auto to = change_of(c, i);
        ended[i] = c.group->kind(i) == script_kind::in_flight && to.how == change::manner::less ? to.by : 0;
    }
    return ended;
}

bool changes_something(const correction& c)
{
    for (std::size_t i = 0; i < c.group->size(); ++i) {
        if (change_of(c, i).by > 0)
            return true;
    }
    return false;
}

void append_correct(std::string& out, const correction& c, const correct_options& how, call_by by, const script& s)
{
    argument_room room;
    append_argument(out, c.key, write_argument(room, c, how), how, by, s);
}

std::string correct_argument(const correction& c, const correct_options& how)
{
    argument_room room;
    return std::string(write_argument(room, c, how));
}

std::string commit_argument(const packed_group& group, const correct_options& how)
{
    argument_room room;
    return std::string(write_argument(room, group, no_changes, {}, how));
}

void append_renew(std::string& out, const packed_group& group, std::string_view key, const correct_options& how,
                  call_by by, const script& s)
{
    argument_room room;
    append_call(out, s, by, key, write_argument(room, group, no_changes, {}, how));
}

void append_keep_at_most(std::string& out, const packed_group& group, std::string_view key,
                         std::span<const std::uint64_t> most, time_point after, const correct_options& how, call_by by,
                         const script& s)
{
    std::array<change, max_rules_per_group> changes{};
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (group.kind(i) == script_kind::in_flight)
            changes[i] = {change::manner::at_most, most[i]};
    }
    auto with = how;
    with.until = after;
    argument_room room;
    append_call(out, s, by, key, write_argument(room, group, changes, {}, with));
}

call_answer read_correct(std::string_view reply)
{
    number_reader from(reply);
    const auto status = static_cast<reply_status>(from.byte());
    const auto now = from.moment();
    if (from.failed() || status > reply_status::foreign || status == reply_status::refused)
        return {};
    if (status != reply_status::done)
        return read_unchanged(status, now, from, 1);
    return {.status = from.at_end() ? call_status::done : call_status::malformed, .now = now};
}

} // namespace headgate::limiter::redis
