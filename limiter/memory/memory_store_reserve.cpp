// Reservations: charge an estimate now, correct it when the true cost is known, give it back when nobody ever says.
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>

namespace headgate::limiter {

namespace {

// A request in flight holds no token: when its rule has become a rate meanwhile, or was one, there is nothing to
// correct.
bool was_another_kind(const part& p, const rule& now)
{
    for (const auto& m : p.group->members()) {
        if (m.limits.limits.name == now.name)
            return (m.limits.limits.kind == algorithm::concurrency) != (now.kind == algorithm::concurrency);
    }
    return false;
}

} // namespace

// What is not in flight on the key's own entry was begun while the store was full, on the shared counters.
void memory_store::end_shared(shard& in, const rule_group& group, std::size_t rule, std::uint64_t cost)
{
    const auto shared = in.overflow.find(group.shared_number());
    if (cost == 0 || shared == in.overflow.end() || shared->second.group != group.id())
        return;
    for_each_member(group, shared->second.level, shared->second.words, [&](const meter& m, state w, std::size_t i) {
        if (i == rule)
            limiter::give_back(m, w, {}, {}, cost);
    });
}

void memory_store::settle_part(const part& p, std::span<const std::uint64_t> actual, time_point charged_at,
                               time_point now)
{
    auto& lineage = p.group->lineage();
    const bounded_key key(p.key);
    const auto hash = hash_of(lineage, key.view());
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    now = in.advance(now);
    verdict ignored;
    const auto& group = current_group(p, ignored);
    auto at = locate(in, hash, key.view(), group, now);
    if (group.has_logs())
        grow_logs(at, key.view(), now);
    const part settled{p.group, p.key, actual};
    for_each_member(group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        const auto charged = cost_of(p, group, i);
        const auto final_cost = actual.empty() ? 0 : std::min(cost_of(settled, group, i), max_count);
        if (was_another_kind(p, m.limits))
            return;
        if (final_cost > charged) {
            limiter::charge(m, w, now, final_cost - charged);
        } else if (m.limits.kind == algorithm::concurrency) {
            const auto ended = limiter::give_back(m, w, charged_at, now, charged - final_cost);
            end_shared(in, group, i, charged - final_cost - ended);
        } else if (final_cost < charged &&
                   !at.fresh) { // a key that is gone had recovered: there is nothing to give back
            limiter::give_back(m, w, charged_at, now, charged - final_cost);
        }
    });
    if (at.header && !at.fresh)
        in.table.note_recovery(now);
    leave(at, key.view(), now, purpose::take);
}

verdict memory_store::reserve(std::span<const part> parts, time_point now, microseconds lifetime,
                              std::span<decision> decisions, reservation& id)
{
    expire_reservations(now);
    id = 0;
    auto out = take(parts, now, decisions);
    if (!out.admitted)
        return out;
    open_reservation held;
    held.charged_at = out.charged_at;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto& group = *out.groups[i];
        std::lock_guard owner(group.lineage().owner_lock);
        auto& kept = held.parts.emplace_back();
        const auto& owner_now = group.lineage().owner;
        kept.group =
            keep(owner_now, group.base() == owner_now.get() ? group : owner_now->variant(group.variant_name()));
        kept.key = parts[i].key;
        for (std::size_t rule = 0; rule < kept.group->size(); ++rule)
            kept.costs.push_back(cost_of(parts[i], *kept.group, rule));
    }
    std::lock_guard guard(reservations_lock_);
    id = next_reservation_++;
    held.expiry = reservations_by_expiry_.emplace(now + lifetime, id);
    reservations_.emplace(id, std::move(held));
    return out;
}

bool memory_store::settle(reservation id, std::span<const std::uint64_t> actual, time_point now)
{
    open_reservation held;
    {
        std::lock_guard guard(reservations_lock_);
        const auto found = reservations_.find(id);
        if (found == reservations_.end())
            return false;
        held = std::move(found->second);
        reservations_by_expiry_.erase(held.expiry);
        reservations_.erase(found);
    }
    for (const auto& kept : held.parts) {
        const auto n = std::min(actual.size(), kept.costs.size());
        settle_part({kept.group.get(), kept.key, kept.costs}, actual.first(n), held.charged_at, now);
        actual = actual.subspan(n);
    }
    return true;
}

void memory_store::expire_reservations(time_point now)
{
    for (;;) {
        reservation id = 0;
        {
            std::lock_guard guard(reservations_lock_);
            if (reservations_by_expiry_.empty() || reservations_by_expiry_.begin()->first > now)
                return;
            id = reservations_by_expiry_.begin()->second;
        }
        if (!settle(id, {}, now))
            continue; // someone was faster
        std::lock_guard guard(reservations_lock_);
        ++expired_reservations_;
    }
}

} // namespace headgate::limiter
