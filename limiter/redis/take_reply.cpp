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
    const time_point* now; // of the place where it was judged
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
        if (rest >= to.limits->ticks_per_us)
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

void read_part(number_reader& from, const chain_part& p, const time_point& now, std::span<judged_rule> to,
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
        r.now = &now;
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
decision judged(judged_rule& r)
{
    auto said = judge(*r.limits, r.at(), *r.now, r.cost);
    if (is_log(r)) {
        const auto limit = r.limits->limits.count;
        said.admitted = r.limits->limits.unlimited || (r.cost <= limit && r.used_before <= limit - r.cost);
    }
    return said;
}

// As memory_store::charge_refused_part.
void count_refusal(judged_rule& r, decision& said)
{
    if (!is_log(r))
        charge_refused(*r.limits, r.at(), *r.now, r.cost);
    const auto now_says = judge(*r.limits, r.at(), *r.now, r.cost);
    if (!said.admitted)
        said = now_says;
    else
        said.retry_after = now_says.admitted ? never : now_says.retry_after;
}

// As memory_store::say_what_is_left.
void say_what_is_left(judged_rule& r, decision& said)
{
    if (!said.admitted)
        return;
    const auto wait = said.retry_after;
    said = judge(*r.limits, r.at(), *r.now, 0);
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

// The chain as it was found, part after part.
struct chain_read
{
    rules_read rules;
    std::size_t count = 0; // of rules
    std::size_t parts = 0;
    std::array<std::size_t, max_parts> first;
    std::array<time_point, max_parts> now, blocked_until;
};

// Where the rules of each part begin.
void lay_out(std::span<const partial_reply> replies, chain_read& to, verdict& out)
{
    std::array<const packed_group*, max_parts> groups{};
    for (const auto& each : replies) {
        for (std::size_t i = 0; i < each.parts.size(); ++i)
            groups[each.places[i]] = each.parts[i].group;
        to.parts += each.parts.size();
    }
    for (std::size_t p = 0; p < to.parts; ++p) {
        to.first[p] = to.count;
        to.count += groups[p]->size();
        out.groups[p] = &groups[p]->rules();
    }
}

call_answer read_reply(const partial_reply& from, chain_read& to, reply_status& status)
{
    number_reader text(from.text);
    status = static_cast<reply_status>(text.byte());
    const auto now = text.moment();
    if (text.failed() || status > reply_status::unusual)
        return {};
    if (status > reply_status::done)
        return read_unchanged(status, now, text, from.parts.size());
    for (std::size_t i = 0; i < from.parts.size(); ++i) {
        const auto place = from.places[i];
        to.now[place] = now;
        read_part(text, from.parts[i], to.now[place], std::span(to.rules).subspan(to.first[place]),
                  to.blocked_until[place]);
    }
    if (!text.at_end())
        return {};
    return {.status = call_status::done, .now = now};
}

// Each rule by itself.
void judge_rules(chain_read& chain, verdict& out, std::span<decision> decisions)
{
    for (std::size_t i = 0; i < chain.count; ++i) {
        decisions[i] = judged(chain.rules[i]);
        if (chain.rules[i].limits->limits.shadow)
            out.shadow_refused = out.shadow_refused || !decisions[i].admitted;
        else
            out.delay = std::max(out.delay, decisions[i].delay);
    }
}

// Whether all that was asked in one place admits, by the arithmetic here.
bool admits(const partial_reply& asked, const chain_read& chain, std::span<const decision> decisions, bool& blocked)
{
    bool all = true;
    for (std::size_t k = 0; k < asked.parts.size(); ++k) {
        const auto place = asked.places[k];
        const bool is_blocked = chain.blocked_until[place] > chain.now[place];
        blocked = blocked || is_blocked;
        all = all && !is_blocked;
        for (std::size_t i = 0; i < asked.parts[k].group->size(); ++i) {
            const auto at = chain.first[place] + i;
            all = all && (decisions[at].admitted || chain.rules[at].limits->limits.shadow);
        }
    }
    return all;
}

void explain_refusal(chain_read& chain, bool counts, verdict& out, std::span<decision> decisions)
{
    microseconds longest{0};
    for (std::size_t p = 0; p < chain.parts; ++p)
        longest = std::max(longest, chain.blocked_until[p] - chain.now[p]);
    for (std::size_t i = 0; i < chain.count; ++i) {
        if (counts && chain.rules[i].limits->limits.count_refused)
            count_refusal(chain.rules[i], decisions[i]);
        say_what_is_left(chain.rules[i], decisions[i]);
        wait_for(chain.rules[i], decisions[i], longest);
    }
    out.retry_after = longest;
}

void note_moments(const chain_read& chain, bool several, verdict& out)
{
    out.charged_at = chain.now[0];
    out.has_several_clocks = several;
    if (several)
        std::copy_n(chain.now.begin(), chain.parts, out.charged_there.begin());
}

} // namespace

call_answer read_status(std::string_view reply, std::size_t parts)
{
    number_reader text(reply);
    const auto status = static_cast<reply_status>(text.byte());
    const auto now = text.moment();
    if (text.failed() || status > reply_status::unusual)
        return {};
    if (status > reply_status::done)
        return read_unchanged(status, now, text, parts);
    return {.status = call_status::done, .now = now};
}

call_answer read_take(std::string_view reply, std::span<const chain_part> parts, const take_options& how, verdict& out,
                      std::span<decision> decisions)
{
    static constexpr std::array<std::uint8_t, max_parts> in_order{0, 1, 2, 3, 4, 5, 6, 7};
    const partial_reply whole{parts, std::span(in_order).first(parts.size()), reply};
    return read_take({&whole, 1}, how, out, decisions);
}

call_answer read_take(std::span<const partial_reply> replies, const take_options& how, verdict& out,
                      std::span<decision> decisions)
{
    chain_read chain;
    lay_out(replies, chain, out);
    std::array<reply_status, max_parts> said;
    call_answer last;
    for (std::size_t i = 0; i < replies.size(); ++i) {
        last = read_reply(replies[i], chain, said[i]);
        if (last.status != call_status::done)
            return last;
    }
    out.admitted = true;
    out.blocked = out.shared_counters = out.shadow_refused = false;
    out.retry_after = never;
    out.delay = {};
    note_moments(chain, replies.size() > 1, out);
    judge_rules(chain, out, decisions);
    for (std::size_t i = 0; i < replies.size(); ++i) {
        const bool admitted = admits(replies[i], chain, decisions, out.blocked);
        if (admitted != (said[i] == reply_status::done))
            return {.status = call_status::disagreement, .now = last.now};
        out.admitted = out.admitted && admitted;
    }
    if (!out.admitted)
        explain_refusal(chain, !how.look && !out.blocked && how.reserve.id == 0, out, decisions);
    return last;
}

call_answer read_counted(std::span<const partial_reply> replies, verdict& out, std::span<decision> decisions)
{
    chain_read chain;
    lay_out(replies, chain, out);
    call_answer last;
    for (const auto& each : replies) {
        reply_status ignored{};
        last = read_reply(each, chain, ignored);
        if (last.status != call_status::done)
            return last;
    }
    for (std::size_t i = 0; i < chain.count; ++i) {
        const bool was_admitted = decisions[i].admitted;
        decisions[i] = judged(chain.rules[i]);
        decisions[i].admitted = was_admitted;
    }
    explain_refusal(chain, true, out, decisions);
    return last;
}

} // namespace headgate::limiter::redis
