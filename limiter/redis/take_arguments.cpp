// Writes a call of take.lua.
#include "limiter/redis/command.hpp"
#include "limiter/redis/take_call.hpp"

#include <algorithm>
#include <array>

namespace headgate::limiter::redis {

namespace {

enum mode : unsigned
{
    look_only = 1,
    replace_others = 2,
    refusals_may_write = 4,
    has_tails = 8,
    quick = 16,
};

constexpr std::size_t most_bytes = 3 + max_rules_a_group + number_bytes * (1 + 7 * max_rules_a_group);

unsigned kind_byte(const packed_group& group, std::size_t i)
{
    const auto& r = group.limits(i).limits;
    const unsigned manner =
        (r.shadow ? 1u : 0u) | (r.count_refused ? 2u : 0u) | (r.unlimited ? 4u : 0u) | (starts_with_less(r) ? 8u : 0u);
    return static_cast<unsigned>(group.kind(i)) + 8 * manner;
}

void write_pair(number_writer& out, bucket_time t)
{
    out.number(t.us);
    out.number(t.rest);
}

void write_rule(number_writer& out, const packed_group& group, std::size_t i, std::uint64_t cost,
                const take_options& how)
{
    const auto& m = group.limits(i);
    const auto& r = m.limits;
    if (group.kind(i) == script_kind::bucket) {
        out.number(m.ticks_a_us);
        write_pair(out, split(m, ticks_of(m, cost)));
        write_pair(out, split(m, m.tolerance));
        if (starts_with_less(r))
            write_pair(out, split(m, ticks_of(m, r.capacity - r.initial)));
        return;
    }
    out.number(cost);
    out.number(r.count);
    if (group.kind(i) == script_kind::calendar_window) {
        const auto& windows = group.windows_around(i, how.guess);
        for (const auto t : {windows.start, windows.end, windows.next_end})
            out.number(to_number(t));
    } else if (group.kind(i) == script_kind::in_flight) {
        out.number(how.who.id);
        out.number(to_number(how.who.lifetime));
    } else {
        out.number(static_cast<std::uint64_t>(r.period.count()));
    }
}

unsigned mode_of(std::span<const asked_part> parts, const asked_part& p, const take_options& how)
{
    unsigned mode =
        (how.look ? look_only : 0u) | (how.replace ? replace_others : 0u) | (p.group->has_tails() ? has_tails : 0u);
    for (const auto& any : parts)
        mode |= any.group->refusals_may_write() ? refusals_may_write : 0u;
    const bool free = std::any_of(p.costs.begin(), p.costs.end(), [](auto cost) { return cost == 0; });
    return mode == 0 && parts.size() == 1 && p.group->is_quick() && !free ? unsigned{quick} : mode;
}

} // namespace

void append_take(std::string& out, std::span<const asked_part> parts, const take_options& how, call_by by,
                 const script& s)
{
    append_call(out, s, by, parts.size(), parts.size());
    for (const auto& p : parts)
        append_word(out, p.key);
    for (const auto& p : parts) {
        std::array<char, most_bytes> argument;
        number_writer to(argument.data());
        const auto& group = *p.group;
        to.byte(mode_of(parts, p, how));
        to.byte(static_cast<unsigned>(group.size()));
        to.byte(static_cast<unsigned>(group.numbers()));
        for (std::size_t i = 0; i < group.size(); ++i)
            to.byte(kind_byte(group, i));
        to.number(group.fingerprint());
        for (std::size_t i = 0; i < group.size(); ++i)
            write_rule(to, group, i, p.costs.empty() ? 1 : p.costs[i], how);
        append_word(out, std::string_view(argument.data(), static_cast<std::size_t>(to.end() - argument.data())));
    }
}

} // namespace headgate::limiter::redis
