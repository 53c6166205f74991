// Corrects a charge when the true cost of a request is known, and gives charges back.
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>

namespace headgate::limiter {

namespace {

// Returns whether the rule has changed between a rate and concurrency since the charge. A request in flight holds no
// token, so there is nothing to correct then.
bool changed_kind(const part& charged, const rule& now)
{
    for (const auto& m : charged.group->members()) {
        if (m.limits.limits.name == now.name)
            return (m.limits.limits.kind == algorithm::concurrency) != (now.kind == algorithm::concurrency);
    }
    return false;
}

} // namespace

// Releases requests that were started on the overflow counters, while the store was full.
void memory_store::release_shared(shard& in, const rule_group& group, std::size_t rule, std::uint64_t cost)
{
    const auto shared = in.overflow.find(group.shared_number());
    if (cost == 0 || shared == in.overflow.end() || shared->second.group != group.id())
        return;
    for_each_member(group, shared->second.level, shared->second.words, [&](const meter& m, state w, std::size_t i) {
        if (i == rule)
            limiter::give_back(m, w, {}, {}, cost);
    });
}

void memory_store::correct(const part& charged, std::span<const std::uint64_t> actual, time_point charged_at,
                           time_point now)
{
    auto& lineage = charged.group->lineage();
    const bounded_key key(charged.key);
    const auto hash = hash_of(lineage, key.view());
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    const auto at_now = in.advance(now);
    now = at_now;
    verdict ignored;
    const auto& group = current_group(charged, ignored);
    auto at = locate(in, hash, key.view(), group, at_now);
    if (group.has_logs())
        grow_logs(at, key.view(), now);
    const part corrected{charged.group, charged.key, actual};
    for_each_member(group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        if (changed_kind(charged, m.limits))
            return;
        const auto before = cost_of(charged, group, i);
        const auto after = actual.empty() ? 0 : std::min(cost_of(corrected, group, i), max_count);
        if (after > before) {
            limiter::charge(m, w, at_now, after - before);
        } else if (m.limits.kind == algorithm::concurrency) {
            const auto ended = limiter::give_back(m, w, charged_at, at_now, before - after);
            release_shared(in, group, i, before - after - ended);
        } else if (after < before && !at.fresh) { // a key without an entry has recovered: nothing to give back
            limiter::give_back(m, w, in.past(charged_at), at_now, before - after);
        }
    });
    if (at.header && !at.fresh)
        in.table.note_recovery(now);
    leave(at, key.view(), now, purpose::take);
}

void memory_store::give_back(std::span<const part> parts, time_point charged_at, time_point now)
{
    for (const auto& p : parts)
        correct(p, {}, charged_at, now);
}

} // namespace headgate::limiter
