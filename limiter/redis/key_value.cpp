#include "limiter/redis/key_value.hpp"

#include "limiter/redis/client/command.hpp"
#include "limiter/redis/fingerprint.hpp"

#include <algorithm>

namespace headgate::limiter::redis {

namespace {

using std::chrono::milliseconds;

// As in take.lua.
constexpr milliseconds margin{10'000}, longest{315'360'000'000};

std::vector<std::uint64_t> empty_words(const meter& m) { return std::vector<std::uint64_t>(m.max_words()); }

bool is_in_flight(const packed_group& group, std::size_t i) { return group.kind(i) == script_kind::in_flight; }

void give_back(const packed_group& group, key_value& value, const reserved_part& r)
{
    for (std::size_t i = 0; i < group.size(); ++i) {
        auto& s = value.rules[i];
        if (!is_in_flight(group, i)) {
            limiter::give_back(group.limits(i), s.words, r.charged_at, value.last, r.costs[i]);
            continue;
        }
        for (auto& h : s.holders)
            h.count -= h.holder == r.holder ? std::min(h.count, r.costs[i]) : 0;
        std::erase_if(s.holders, [](const held_slots& h) { return h.count == 0; });
    }
}

// As in lua/rewind.lua.
void rewind(const packed_group& group, key_value& value, time_point now)
{
    if (value.last <= now)
        return;
    const auto move = [back = value.last - now](time_point& t) { t = std::max(t - back, time_point{}); };
    move(value.blocked_until);
    for (std::size_t i = 0; i < group.size(); ++i) {
        limiter::rewind(group.limits(i), value.rules[i].words, value.last, now);
        for (auto& h : value.rules[i].holders)
            move(h.expires);
    }
    for (auto& r : value.reserved) {
        move(r.expires);
        move(r.charged_at);
    }
}

} // namespace

key_value fresh_value(const packed_group& group, time_point now)
{
    key_value out;
    out.last = now;
    for (std::size_t i = 0; i < group.size(); ++i) {
        auto& s = out.rules.emplace_back();
        s.words = empty_words(group.limits(i));
        begin(group.limits(i), s.words, now);
    }
    return out;
}

void advance(const packed_group& group, key_value& value, time_point now)
{
    rewind(group, value, now);
    value.last = now;
    for (const auto& each : value.reserved) {
        if (each.expires <= value.last)
            give_back(group, value, each);
    }
    std::erase_if(value.reserved, [&](const reserved_part& r) { return r.expires <= value.last; });
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (!is_in_flight(group, i))
            continue;
        auto& s = value.rules[i];
        std::erase_if(s.holders, [&](const held_slots& h) { return h.expires <= value.last; });
        s.words[0] = 0;
        for (const auto& h : s.holders)
            s.words[0] = std::min(s.words[0] + h.count, max_use);
    }
}

void keep_slots(const packed_group& group, key_value& value, const holder& of, const packed_group& as,
                std::span<const std::uint64_t> most)
{
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (!is_in_flight(group, i))
            continue;
        std::uint64_t n = 0;
        for (std::size_t k = 0; k < as.size() && k < most.size(); ++k)
            n += is_in_flight(as, k) && as.limits(k).limits.name == group.limits(i).limits.name ? most[k] : 0;
        for (const auto& r : value.reserved)
            n += r.holder == of.id ? r.costs[i] : 0;
        auto& s = value.rules[i];
        for (auto& h : s.holders) {
            if (h.holder != of.id)
                continue;
            h.count = most.empty() ? h.count : std::min(h.count, n);
            h.expires = value.last + of.lifetime;
        }
        std::erase_if(s.holders, [](const held_slots& h) { return h.count == 0; });
    }
}

milliseconds time_to_live(const packed_group& group, const key_value& value, time_point now)
{
    auto until = std::max(now, value.blocked_until);
    for (std::size_t i = 0; i < group.size(); ++i) {
        for (const auto& h : value.rules[i].holders)
            until = std::max(until, h.expires);
        if (!is_in_flight(group, i))
            until = std::max(until, recovered_at(group.limits(i), value.rules[i].words));
    }
    const auto left = std::chrono::floor<milliseconds>(until - now);
    return left < longest ? std::min(left + margin + milliseconds{1}, longest) : longest;
}

key_value convert_value(const packed_group& from, const key_value& old, const packed_group& to, time_point now,
                        carry how)
{
    key_value out;
    out.last = now;
    out.blocked_until = old.blocked_until;
    for (std::size_t i = 0; i < to.size(); ++i) {
        const auto& m = to.limits(i);
        auto& s = out.rules.emplace_back();
        s.words = empty_words(m);
        std::size_t before = 0;
        while (before < from.size() && from.limits(before).limits.name != m.limits.name)
            ++before;
        if (before == from.size()) {
            begin(m, s.words, now);
            continue;
        }
        convert(from.limits(before), old.rules[before].words, m, s.words, now, how);
        if (is_in_flight(to, i))
            s.holders = old.rules[before].holders;
    }
    return out;
}

carry how_to_carry(std::uint64_t from_fingerprint, const rule_group& to)
{
    const auto is_from = [&](const rule_group& g) { return fingerprint_of(describe_rules(g)) == from_fingerprint; };
    const auto& base = *to.base();
    const bool same_group = is_from(base) || std::any_of(base.variants().begin(), base.variants().end(),
                                                         [&](const auto& variant) { return is_from(*variant); });
    return same_group ? carry::all : carry::up_to_limit;
}

std::vector<decision> decisions_of(const packed_group& group, const key_value& value, time_point now)
{
    std::vector<decision> out;
    for (std::size_t i = 0; i < group.size(); ++i)
        out.push_back(judge(group.limits(i), value.rules[i].words, now, 0));
    return out;
}

std::uint64_t grant(const packed_group& group, key_value& value, std::uint64_t n, time_point now)
{
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (!is_in_flight(group, i))
            most = std::max(most, limiter::grant(group.limits(i), value.rules[i].words, now, n));
    }
    return most;
}

void reset(const packed_group& group, key_value& value)
{
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (!is_in_flight(group, i)) // requests in flight stay in flight
            std::fill(value.rules[i].words.begin(), value.rules[i].words.end(), 0);
    }
}

void append_replace(std::string& out, std::string_view key, std::string_view before, std::string_view after,
                    milliseconds time_to_live, call_by by)
{
    append_call(out, replace_script(), by, 1, 3);
    append_word(out, key);
    append_word(out, before);
    append_word(out, after);
    append_word(out, static_cast<std::size_t>(time_to_live.count()));
}

} // namespace headgate::limiter::redis
