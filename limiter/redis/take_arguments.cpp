// Writes calls of take.lua and take_each.lua.
#include "limiter/redis/client/command.hpp"
#include "limiter/redis/take_each_call.hpp"

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
    reserve = 32,
    refused_elsewhere = 64,
};

constexpr std::size_t most_bytes = 3 + max_rules_per_group + number_bytes * (4 + 8 * max_rules_per_group);

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
        out.number(m.ticks_per_us);
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
        out.number(how.owner.id);
        out.number(to_number(how.owner.lifetime));
        out.number(to_number(how.until));
    } else {
        out.number(static_cast<std::uint64_t>(r.period.count()));
    }
}

void write_reservation(number_writer& out, const chain_part& p, const take_options& how)
{
    out.number(how.reserve.id);
    out.number(to_number(how.reserve.lifetime));
    out.number(how.owner.id);
    for (std::size_t i = 0; i < p.group->size(); ++i)
        out.number(p.costs.empty() ? 1 : p.costs[i]);
}

unsigned mode_of(std::span<const chain_part> parts, const chain_part& p, const take_options& how)
{
    unsigned mode =
        (how.look ? look_only : 0u) | (how.replace ? replace_others : 0u) | (p.group->has_tails() ? has_tails : 0u);
    for (const auto& any : parts)
        mode |= any.group->refusals_may_write() ? refusals_may_write : 0u;
    if (how.reserve.id != 0)
        mode = (mode & ~unsigned{refusals_may_write}) | reserve;
    mode |= how.refused ? refused_elsewhere : 0u;
    return mode;
}

// Writes one part's argument to `room`.
std::string_view write_argument(std::array<char, most_bytes>& room, std::span<const chain_part> parts,
                                const chain_part& p, const take_options& how)
{
    number_writer to(room.data());
    const auto& group = *p.group;
    to.byte(mode_of(parts, p, how));
    to.byte(static_cast<unsigned>(group.size()));
    to.byte(static_cast<unsigned>(group.numbers()));
    for (std::size_t i = 0; i < group.size(); ++i)
        to.byte(kind_byte(group, i));
    to.number(group.fingerprint());
    if (how.reserve.id != 0)
        write_reservation(to, p, how);
    for (std::size_t i = 0; i < group.size(); ++i)
        write_rule(to, group, i, p.costs.empty() ? 1 : p.costs[i], how);
    return {room.data(), static_cast<std::size_t>(to.end() - room.data())};
}

} // namespace

void append_take(std::string& out, std::span<const chain_part> parts, const take_options& how, call_by by,
                 const script& s)
{
    append_call(out, s, by, parts.size(), parts.size());
    for (const auto& p : parts)
        append_word(out, p.key);
    for (const auto& p : parts) {
        std::array<char, most_bytes> room;
        append_word(out, write_argument(room, parts, p, how));
    }
}

bool is_usual(std::span<const chain_part> parts, const take_options& how)
{
    if (parts.size() != 1 || !parts[0].group->is_usual() || how.look || how.replace || how.refused ||
        how.reserve.id != 0)
        return false;
    return std::none_of(parts[0].costs.begin(), parts[0].costs.end(), [](auto cost) { return cost == 0; });
}

void write_each_argument(std::string& out, const chain_part& any, const take_options& how)
{
    std::array<char, most_bytes> room;
    number_writer to(room.data());
    const auto& group = *any.group;
    to.byte(static_cast<unsigned>(group.size()));
    to.byte(static_cast<unsigned>(group.numbers()));
    for (std::size_t i = 0; i < group.size(); ++i)
        to.byte(static_cast<unsigned>(group.kind(i)));
    to.number(group.fingerprint());
    for (std::size_t i = 0; i < group.size(); ++i)
        write_rule(to, group, i, any.costs.empty() ? 1 : any.costs[i], how);
    out.assign(room.data(), to.end());
}

void append_take_each(std::string& out, std::size_t keys, std::string_view key_words, std::string_view argument,
                      call_by by, const script& s)
{
    append_call(out, s, by, keys, 1);
    out += key_words;
    append_word(out, argument);
}

std::string take_argument(const chain_part& part, const take_options& how)
{
    std::array<char, most_bytes> room;
    return std::string(write_argument(room, {&part, 1}, part, how));
}

} // namespace headgate::limiter::redis
