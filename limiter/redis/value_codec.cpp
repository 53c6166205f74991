// Encodes and decodes values. Their layout is documented in lua/take.lua.
#include "limiter/core/sliding_log.hpp"
#include "limiter/redis/key_value.hpp"

#include <algorithm>
#include <cstring>

namespace headgate::limiter::redis {

namespace {

void decode_fixed(number_reader& from, const meter& m, script_kind kind, rule_state& to, std::uint64_t& tail)
{
    switch (kind) {
    case script_kind::bucket: {
        const auto us = from.number(), rest = from.number();
        if (rest >= m.ticks_per_us)
            from.fail();
        const wide ticks = join(m, {us, rest});
        to.words.resize(2);
        std::memcpy(to.words.data(), &ticks, sizeof ticks);
        return;
    }
    case script_kind::sliding_log:
        tail = from.number();
        to.words = {tail, from.number()};
        return;
    case script_kind::in_flight:
        tail = from.number();
        to.words.resize(1);
        return;
    default:
        to.words.resize(numbers_of(kind));
        for (auto& word : to.words)
            word = from.number();
    }
}

// Decodes a log. Its records must be in order of time, not empty, at most as many as the limit, and add up to the sum.
void decode_log(number_reader& from, const meter& m, std::uint64_t records, rule_state& to)
{
    if (records > m.limits.count)
        return static_cast<void>(from.fail());
    const auto sum = to.words[1];
    to.words.resize(m.max_words());
    std::uint64_t total = 0, latest = 0;
    for (std::uint64_t i = 0; i < records && !from.failed(); ++i) {
        const auto when = from.number(), cost = from.number();
        if (when < latest || cost == 0 || cost > sum - total)
            return static_cast<void>(from.fail());
        total += cost;
        latest = when;
        to.words[sliding_log::header_words + 2 * i] = when;
        to.words[sliding_log::header_words + 2 * i + 1] = cost;
    }
    if (total != sum)
        from.fail();
}

void decode_holders(number_reader& from, std::uint64_t holders, rule_state& to)
{
    for (std::uint64_t i = 0; i < holders && !from.failed(); ++i) {
        held_slots h;
        h.holder = from.number();
        h.count = from.number();
        h.expires = from.moment();
        to.words[0] = std::min(to.words[0] + h.count, max_use);
        to.holders.push_back(h);
    }
}

// "held", before each reservation: distinguishes reservations from other bytes of the same length.
constexpr std::uint64_t reservation_mark = 0x68656c64;

bool decode_reserved(number_reader& from, std::size_t rules, std::vector<reserved_part>& to)
{
    while (!from.failed() && !from.at_end()) {
        if (from.number() != reservation_mark)
            return false;
        auto& r = to.emplace_back();
        r.id = from.number();
        r.expires = from.moment();
        r.charged_at = from.moment();
        r.holder = from.number();
        for (std::size_t i = 0; i < rules; ++i)
            r.costs.push_back(from.number());
    }
    return true;
}

void put(std::string& out, std::uint64_t n)
{
    char bytes[number_bytes];
    number_writer(bytes).number(n);
    out.append(bytes, number_bytes);
}

void encode_fixed(std::string& out, const meter& m, script_kind kind, const rule_state& s)
{
    if (kind == script_kind::bucket) {
        wide ticks;
        std::memcpy(&ticks, s.words.data(), sizeof ticks);
        const auto t = split(m, ticks);
        put(out, t.us);
        put(out, t.rest);
    } else if (kind == script_kind::sliding_log) {
        const sliding_log::ring log{const_state(s.words)};
        put(out, log.size());
        put(out, log.sum());
    } else if (kind == script_kind::in_flight) {
        put(out, s.holders.size());
    } else {
        for (const auto word : s.words)
            put(out, word);
    }
}

void encode_tail(std::string& out, script_kind kind, const rule_state& s)
{
    if (kind == script_kind::sliding_log) {
        const sliding_log::ring log{const_state(s.words)};
        for (std::size_t i = 0; i < log.size(); ++i) {
            put(out, static_cast<std::uint64_t>(log.when(i)));
            put(out, log.cost(i));
        }
    }
    for (const auto& h : s.holders) {
        put(out, h.holder);
        put(out, h.count);
        put(out, to_number(h.expires));
    }
}

} // namespace

std::optional<std::uint64_t> fingerprint_in(std::string_view value)
{
    number_reader from(value);
    const auto fingerprint = from.number();
    if (from.failed() || fingerprint == 0 || value.size() % number_bytes != 0 ||
        value.size() < header_numbers * number_bytes)
        return {};
    return fingerprint;
}

std::optional<key_value> decode(const packed_group& group, std::string_view value)
{
    number_reader from(value);
    if (from.number() != group.fingerprint())
        return {};
    key_value out;
    out.last = from.moment();
    out.blocked_until = from.moment();
    out.rules.resize(group.size());
    std::vector<std::uint64_t> tails(group.size());
    for (std::size_t i = 0; i < group.size(); ++i)
        decode_fixed(from, group.limits(i), group.kind(i), out.rules[i], tails[i]);
    for (std::size_t i = 0; i < group.size() && !from.failed(); ++i) {
        if (group.kind(i) == script_kind::sliding_log)
            decode_log(from, group.limits(i), tails[i], out.rules[i]);
        else if (group.kind(i) == script_kind::in_flight)
            decode_holders(from, tails[i], out.rules[i]);
    }
    if (!decode_reserved(from, group.size(), out.reserved) || !from.at_end())
        return {};
    return out;
}

std::string encode(const packed_group& group, const key_value& value)
{
    std::string out;
    put(out, group.fingerprint());
    put(out, to_number(value.last));
    put(out, to_number(value.blocked_until));
    for (std::size_t i = 0; i < group.size(); ++i)
        encode_fixed(out, group.limits(i), group.kind(i), value.rules[i]);
    for (std::size_t i = 0; i < group.size(); ++i)
        encode_tail(out, group.kind(i), value.rules[i]);
    for (const auto& r : value.reserved) {
        for (const auto n : {reservation_mark, r.id, to_number(r.expires), to_number(r.charged_at), r.holder})
            put(out, n);
        for (const auto cost : r.costs)
            put(out, cost);
    }
    return out;
}

} // namespace headgate::limiter::redis
