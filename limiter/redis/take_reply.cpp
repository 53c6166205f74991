// Reads a reply of take.lua: the same steps as memory_store::decide, on the state that the script found.
#include "limiter/redis/call_reply.hpp"
#include "limiter/redis/take_call.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headgate::limiter::redis {

namespace {

constexpr std::size_t most_words = 6; // of a log: head, sum and two records

// One rule of the chain, its state as far as a decision needs it. Nothing is set before it is read: there is room for
// 128 of them, and a chain has two.
struct judged_rule
{
    const meter* limits;
    std::uint64_t cost;
    std::uint64_t used_before; // logs
    std::size_t size;
    std::array<std::uint64_t, most_words> words; // a log's: after a refusal that counts, already counted

    state at() { return {words.data(), size}; }
};

using rules_read = std::array<judged_rule, max_decisions>;

bool is_log(const judged_rule& r) { return r.limits->limits.kind == algorithm::sliding_log; }

void read_state(number_reader& from, script_kind kind, judged_rule& to)
{
    if (kind == script_kind::bucket) {
        const auto us = from.number(), rest = from.number();
        if (rest >= to.limits->ticks_a_us)
            from.fail();
        const wide ticks = join(*to.limits, {us, rest});
        std::memcpy(to.words.data(), &ticks, sizeof ticks);
        return;
    }
    for (std::size_t i = 0; i < numbers_of(kind); ++i)
        to.words[i] = from.number();
}

// A log that judges like the one in Redis: the record to wait for, if another than the newest, and the newest.
void read_log(number_reader& from, judged_rule& to, time_point now)
{
    to.used_before = from.number();
    const auto used = from.number(), newest = from.number(), leaves = from.number();
    const auto period = static_cast<std::uint64_t>(to.limits->limits.period.count());
    const auto in_window = [&](std::uint64_t when) { return when <= to_number(now) && when + period > to_number(now); };
    to.words.fill(0);
    if (used == 0)
        return;
    const bool two = leaves != 0 && leaves != newest;
    if (!in_window(newest) || (two && (!in_window(leaves) || leaves > newest || used < 2)))
        from.fail();
    const auto last = two ? std::uint64_t{1} : used;
    to.words = {two ? 2u : 1u, used, two ? leaves : newest, two ? used - 1 : used, newest, last};
}

void read_part(number_reader& from, const asked_part& p, time_point now, std::span<judged_rule> to,
               time_point& blocked_until)
{
    const auto& group = *p.group;
    const auto present = from.byte();
    if (present > 1)
        from.fail();
    blocked_until = present ? from.moment() : time_point{};
    for (std::size_t i = 0; i < group.size(); ++i) {
        auto& r = to[i];
        r.limits = &group.limits(i);
        r.cost = p.costs.empty() ? 1 : p.costs[i];
        r.size = group.kind(i) == script_kind::sliding_log ? most_words : r.limits->words();
        std::fill_n(r.words.begin(), r.size, 0);
        if (present)
            read_state(from, group.kind(i), r);
        else
            begin(*r.limits, r.at(), now);
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (group.kind(i) == script_kind::sliding_log)
            read_log(from, to[i], now);
        else if (group.kind(i) == script_kind::in_flight)
            to[i].words[0] = from.number();
    }
}

// A log's decision is about the log that was returned; whether it admitted, about the one before.
decision judged(judged_rule& r, time_point now)
{
    auto said = judge(*r.limits, r.at(), now, r.cost);
    if (is_log(r)) {
        const auto limit = r.limits->limits.count;
        said.admitted = r.limits->limits.unlimited || (r.cost <= limit && r.used_before <= limit - r.cost);
    }
    return said;
}

// As memory_store::charge_refused_part.
void count_refusal(judged_rule& r, decision& said, time_point now)
{
    if (!is_log(r))
        charge_refused(*r.limits, r.at(), now, r.cost);
    const auto now_says = judge(*r.limits, r.at(), now, r.cost);
    if (!said.admitted)
        said = now_says;
    else
        said.retry_after = now_says.admitted ? never : now_says.retry_after;
}

// As memory_store::say_what_is_left.
void say_what_is_left(judged_rule& r, decision& said, time_point now)
{
    if (!said.admitted)
        return;
    const auto wait = said.retry_after;
    said = judge(*r.limits, r.at(), now, 0);
    said.admitted = true;
    said.retry_after = wait;
}

// As memory_store::longest_wait, of one rule.
void wait_for(const judged_rule& r, const decision& said, microseconds& longest)
{
    if (longest == never || r.limits->limits.shadow || (said.admitted && said.retry_after == never))
        return;
    longest = said.retry_after == never ? never : std::max(longest, said.retry_after);
}

} // namespace

call_answer read_take(std::string_view reply, std::span<const asked_part> parts, const take_options& how, verdict& out,
                      std::span<decision> decisions)
{
    number_reader from(reply);
    const auto status = static_cast<reply_status>(from.byte());
    const auto now = from.moment();
    if (from.failed() || status > reply_status::foreign)
        return {};
    if (status > reply_status::done)
        return read_unchanged(status, now, from, parts.size());

    rules_read rules;
    std::array<time_point, max_parts> blocked_until;
    std::size_t n = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        read_part(from, parts[i], now, std::span(rules).subspan(n), blocked_until[i]);
        n += parts[i].group->size();
        out.groups[i] = &parts[i].group->rules();
    }
    if (!from.at_end())
        return {};

    out.admitted = true;
    out.blocked = out.shared_counters = out.shadow_refused = false;
    out.retry_after = never;
    out.delay = {};
    out.charged_at = now;
    for (std::size_t i = 0; i < n; ++i) {
        decisions[i] = judged(rules[i], now);
        if (rules[i].limits->limits.shadow) {
            out.shadow_refused = out.shadow_refused || !decisions[i].admitted;
            continue;
        }
        out.admitted = out.admitted && decisions[i].admitted;
        out.delay = std::max(out.delay, decisions[i].delay);
    }
    microseconds longest{0};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (blocked_until[i] > now)
            out.admitted = false, out.blocked = true;
        longest = std::max(longest, blocked_until[i] - now);
    }
    if (out.admitted != (status == reply_status::done))
        return {.status = call_status::disagreement, .now = now};
    if (!out.admitted) {
        for (std::size_t i = 0; i < n; ++i) {
            if (!how.look && !out.blocked && rules[i].limits->limits.count_refused)
                count_refusal(rules[i], decisions[i], now);
            say_what_is_left(rules[i], decisions[i], now);
            wait_for(rules[i], decisions[i], longest);
        }
        out.retry_after = longest;
    }
    return {.status = call_status::done, .now = now};
}

} // namespace headgate::limiter::redis
