// Reads a reply of take.lua: the same steps as memory_store::decide, on the state that the script found.
#include "limiter/redis/call_reply.hpp"
#include "limiter/redis/take_call.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headgate::limiter::redis {

namespace {

constexpr std::size_t most_words = 6; // of a log: head, sum and two records

// One rule of the chain with the state that its decision needs. The members are not initialised: there is room for 128
// rules, and a typical chain has two.
struct judged_rule
{
    const meter* limits;
    const time_point* now; // the clock of its server
    std::uint64_t cost;
    std::uint64_t used_before; // logs
    std::size_t size;
    std::array<std::uint64_t, most_words> words; // for a log: after a counted refusal

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

// Reads a log into one with the same decision as that in Redis: the record to wait for, if it is not the newest, and
// the newest.
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

// Computes the decision of one rule. For a log, `admitted` is about the log before the call, the rest about the
// returned one.
decision judged(judged_rule& r)
{
    auto decided = judge(*r.limits, r.at(), *r.now, r.cost);
    if (is_log(r)) {
        const auto limit = r.limits->limits.count;
        decided.admitted = r.limits->limits.unlimited || (r.cost <= limit && r.used_before <= limit - r.cost);
    }
    return decided;
}

// Counts a refusal, like memory_store::charge_refused_part.
void count_refusal(judged_rule& r, decision& decided)
{
    if (!is_log(r))
        charge_refused(*r.limits, r.at(), *r.now, r.cost);
    const auto decided_now = judge(*r.limits, r.at(), *r.now, r.cost);
    if (!decided.admitted)
        decided = decided_now;
    else
        decided.retry_after = decided_now.admitted ? never : decided_now.retry_after;
}

// Like memory_store::exclude_refused_request.
void exclude_refused_request(judged_rule& r, decision& decided)
{
    if (!decided.admitted)
        return;
    const auto wait = decided.retry_after;
    decided = judge(*r.limits, r.at(), *r.now, 0);
    decided.admitted = true;
    decided.retry_after = wait;
}

// Like memory_store::longest_wait, for one rule.
void wait_for(const judged_rule& r, const decision& decided, microseconds& longest)
{
    if (longest == never || r.limits->limits.shadow || (decided.admitted && decided.retry_after == never))
        return;
    longest = decided.retry_after == never ? never : std::max(longest, decided.retry_after);
}

// The chain as it was read, part by part.
struct chain_read
{
    rules_read rules;
    std::size_t count = 0; // of rules
    std::size_t parts = 0;
    std::array<std::size_t, max_parts> first;
    std::array<time_point, max_parts> now, blocked_until;
};

// Finds where the rules of each part begin.
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

// Decides each rule.
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

// Returns whether all rules of one call admit, by the arithmetic of limiter/core.
bool admits(const partial_reply& of, const chain_read& chain, std::span<const decision> decisions, verdict& out)
{
    bool all = true;
    for (std::size_t k = 0; k < of.parts.size(); ++k) {
        const std::size_t place = of.places[k];
        if (chain.blocked_until[place] > chain.now[place]) {
            out.blocked_part = out.blocked ? std::min(out.blocked_part, place) : place;
            out.blocked = true;
            all = false;
        }
        for (std::size_t i = 0; i < of.parts[k].group->size(); ++i) {
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
        exclude_refused_request(chain.rules[i], decisions[i]);
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
    std::array<reply_status, max_parts> statuses;
    call_answer last;
    for (std::size_t i = 0; i < replies.size(); ++i) {
        last = read_reply(replies[i], chain, statuses[i]);
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
        const bool admitted = admits(replies[i], chain, decisions, out);
        if (admitted != (statuses[i] == reply_status::done))
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
