// Deciding and charging. Entries, corrections, operators' verbs and reloads have files of their own.
#include "limiter/memory/memory_store.hpp"

#include "limiter/core/fast_path.hpp"
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <random>
#include <stdexcept>

namespace headgate::limiter {

namespace {

constexpr std::size_t max_shards = 64;
constexpr std::uint64_t no_value = ~std::uint64_t{0};

hash_secret random_secret()
{
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    return {word(), word()};
}

} // namespace

memory_store::memory_store(std::size_t max_keys) : memory_store(max_keys, random_secret()) {}

memory_store::memory_store(std::size_t max_keys, hash_secret secret) : max_keys_(max_keys), hash_(secret)
{
    if (max_keys == 0)
        throw std::invalid_argument("a memory store needs room for at least one key");
    // Small stores have few shards, so that each shard holds enough keys to fill evenly.
    const auto shards = std::bit_floor(std::clamp<std::size_t>(max_keys / 1024, 1, max_shards));
    shard_bits_ = static_cast<std::size_t>(std::countr_zero(shards));
    shards_ = std::make_unique<shard[]>(shards);
    for (auto& in : all_shards())
        in.table.attach(directory_, memory_);
    resize_shards();
}

memory_store::~memory_store() = default;

std::uint64_t memory_store::hash_of(const group_lineage& lineage, std::string_view key) const
{
    return hash_(lineage.number, key);
}

// The low bits select the shard, the high 32 bits the slot in its index.
memory_store::shard& memory_store::shard_of(std::uint64_t hash) const
{
    return shards_[hash & ((std::size_t{1} << shard_bits_) - 1)];
}

std::uint64_t cost_of(const part& p, const rule_group& judging, std::size_t i)
{
    if (p.group == &judging)
        return p.costs.empty() ? 1 : p.costs[i];
    // The rules are newer than the caller's. The caller will release only what it knows to be in flight.
    const auto& rule = judging.members()[i].limits.limits;
    const bool in_flight = rule.kind == algorithm::concurrency;
    for (std::size_t j = 0; j < p.group->size(); ++j) {
        const auto& known = p.group->members()[j].limits.limits;
        if (known.name != rule.name)
            continue;
        if (in_flight && known.kind != algorithm::concurrency)
            return 0;
        return p.costs.empty() ? 1 : p.costs[j];
    }
    return in_flight ? 0 : 1;
}

// Locks every shard that the parts use, each once, in the order of their addresses, so that two chains cannot deadlock.
class memory_store::locked_parts
{
public:
    locked_parts(const memory_store& store, std::span<const part> parts) : count_(parts.size())
    {
        if (parts.size() > max_parts)
            throw std::length_error("a chain has too many keys");
        for (std::size_t i = 0; i < count_; ++i) {
            keys_[i].set(parts[i].key);
            hashes_[i] = store.hash_of(parts[i].group->lineage(), keys_[i].view());
            order_[i] = shards_[i] = &store.shard_of(hashes_[i]);
        }
        auto last = order_.begin() + static_cast<std::ptrdiff_t>(count_);
        if (count_ > 1) {
            std::sort(order_.begin(), last);
            last = std::unique(order_.begin(), last);
        }
        locked_ = static_cast<std::size_t>(last - order_.begin());
        for (std::size_t i = 0; i < locked_; ++i)
            order_[i]->lock.lock();
    }
    ~locked_parts()
    {
        for (std::size_t i = 0; i < locked_; ++i)
            order_[i]->lock.unlock();
    }
    locked_parts(const locked_parts&) = delete;
    locked_parts& operator=(const locked_parts&) = delete;

    // Returns one moment for the whole chain, not earlier than any of its shards has seen.
    time_point advance(time_point now)
    {
        for (std::size_t i = 0; i < locked_; ++i)
            now = std::max(now, order_[i]->latest);
        for (std::size_t i = 0; i < locked_; ++i)
            order_[i]->latest = now;
        return now;
    }
    shard& in(std::size_t i) const { return *shards_[i]; }
    std::uint64_t hash(std::size_t i) const { return hashes_[i]; }
    std::string_view key(std::size_t i) const { return keys_[i].view(); }

private:
    std::size_t count_;
    std::size_t locked_ = 0;
    std::array<shard*, max_parts> shards_;
    std::array<shard*, max_parts> order_;
    std::array<std::uint64_t, max_parts> hashes_;
    std::array<bounded_key, max_parts> keys_;
};

bool memory_store::take_fast(const part& p, time_point now, std::span<decision> decisions, verdict& out)
{
    const auto& group = *p.group;
    auto& lineage = group.lineage();
    if (group.has_logs() || !bounded_key::fits(p.key))
        return false;
    const auto hash = hash_of(lineage, p.key);
    auto& in = shard_of(hash);
    in.table.prefetch(static_cast<std::uint32_t>(hash >> 32));
    std::lock_guard guard(in.lock);
    if (lineage.current.load(std::memory_order_acquire) != group.base())
        return false;
    auto* const header = in.table.find_plain(static_cast<std::uint32_t>(hash >> 32), group, p.key);
    if (!header)
        return false;
    now = in.advance(now);
    const auto* const members = group.members().data();
    const auto count = group.size();
    std::array<pending_charge, max_rules_per_group> charges;
    auto* at = key_table::words_after(header);
    for (std::size_t i = 0; i < count; at += members[i++].words) {
        const auto& m = members[i].limits;
        const auto cost = p.costs.empty() ? 1 : p.costs[i];
        auto& decided = decisions[i];
        if (!admit_fast(m, at, now, cost, decided, charges[i])) {
            decided = judge(m, {at, members[i].words}, in.at(now), cost);
            charges[i] = {at, no_value};
        }
        if (!decided.admitted)
            return refuse_fast(p, key_table::words_after(header), in.at(now), decisions, out);
        if (!m.limits.shadow)
            out.delay = std::max(out.delay, decided.delay);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto& c = charges[i];
        if (c.value != no_value)
            *c.word = c.value;
        else
            charge(members[i].limits, {c.word, members[i].words}, in.at(now), p.costs.empty() ? 1 : p.costs[i]);
    }
    out.charged_at = now;
    out.groups[0] = &group;
    return true;
}

// Decides a refusal as `decide` does, for a key whose rules charge nothing when they refuse. Returns false and decides
// nothing when a rule charges refusals, or when only shadow rules refuse, so that the request is admitted.
bool memory_store::refuse_fast(const part& p, std::uint64_t* words, moment now, std::span<decision> decisions,
                               verdict& out)
{
    if (p.group->counts_refused())
        return false;
    out = {};
    microseconds wait{0};
    std::size_t i = 0;
    for (const auto& [m, size, _] : p.group->members()) {
        const const_state s{words, size};
        auto& decided = decisions[i];
        decided = judge(m, s, now, p.costs.empty() ? 1 : p.costs[i]);
        ++i;
        words += size;
        if (decided.admitted) {
            // The request is refused, so this rule is not charged: its decision must not count the request.
            if (!m.limits.shadow)
                out.delay = std::max(out.delay, decided.delay);
            decided = judge(m, s, now, 0);
            decided.admitted = true;
            decided.retry_after = never;
        } else if (m.limits.shadow) {
            out.shadow_refused = true;
        } else {
            out.admitted = false;
            wait = decided.retry_after == never || wait == never ? never : std::max(wait, decided.retry_after);
        }
    }
    if (out.admitted)
        return false;
    out.retry_after = wait;
    out.charged_at = now;
    out.groups[0] = p.group;
    return true;
}

verdict memory_store::take(std::span<const part> parts, time_point now, std::span<decision> decisions)
{
    verdict out;
    if (parts.size() != 1 || !take_fast(parts[0], now, decisions, out))
        decide(parts, now, decisions, purpose::take, out);
    return out;
}

verdict memory_store::look(std::span<const part> parts, time_point now, std::span<decision> decisions)
{
    verdict out;
    decide(parts, now, decisions, purpose::look, out);
    return out;
}

void memory_store::decide(std::span<const part> parts, time_point now, std::span<decision> decisions, purpose why,
                          verdict& out)
{
    locked_parts locked(*this, parts);
    now = locked.advance(now);
    out = {};
    out.charged_at = now;
    std::array<located, max_parts> at;
    std::size_t n = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        at[i] = locate(locked.in(i), locked.hash(i), locked.key(i), current_group(parts[i], out), locked.in(i).at(now));
        out.groups[i] = at[i].group;
        if (parts.size() > 1 && at[i].header)
            at[i].header->flags |= entry_header::pinned;
        judge_part(parts[i], at[i], at[i].at(now), decisions.subspan(n, at[i].group->size()), out);
        if (at[i].blocked_until > now) {
            out.blocked_part = out.blocked ? out.blocked_part : i;
            out.admitted = false, out.blocked = true;
        }
        n += at[i].group->size();
    }
    const bool charges = why == purpose::take && out.admitted;
    n = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto of_part = decisions.subspan(n, at[i].group->size());
        n += of_part.size();
        // Charge only after every rule admitted: a refused request must not use up the others.
        if (charges)
            charge_part(parts[i], at[i], locked.key(i), at[i].at(now), of_part);
        else if (why == purpose::take && !out.blocked)
            charge_refused_part(parts[i], at[i], locked.key(i), at[i].at(now), of_part);
    }
    if (!out.admitted) {
        exclude_refused_request(std::span(at.data(), parts.size()), decisions, now);
        out.retry_after = longest_wait(std::span(at.data(), parts.size()), decisions, now);
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
        leave(at[i], locked.key(i), now, why);
}

// The rules that would have admitted were not charged: their decisions must not count the refused request.
void memory_store::exclude_refused_request(std::span<const located> at, std::span<decision> decisions, time_point now)
{
    std::size_t n = 0;
    for (const auto& part_at : at) {
        for_each_member(*part_at.group, part_at.level, part_at.words, [&](const meter& m, state w, std::size_t) {
            auto& decided = decisions[n++];
            if (!decided.admitted)
                return;
            const auto wait = decided.retry_after;
            decided = judge(m, w, part_at.at(now), 0);
            decided.admitted = true;
            decided.retry_after = wait;
        });
    }
}

// Returns the version of the group that decides every request. Read under the shard's lock, which a reload takes after
// it has set the version.
const rule_group& memory_store::current_group(const part& p, verdict& out)
{
    auto& lineage = p.group->lineage();
    if (lineage.current.load(std::memory_order_acquire) == p.group->base())
        return *p.group;
    std::lock_guard guard(lineage.owner_lock);
    out.kept.push_back(lineage.owner);
    return out.kept.back()->variant(p.group->variant_name());
}

void memory_store::judge_part(const part& p, const located& at, moment now, std::span<decision> decisions, verdict& out)
{
    out.shared_counters = out.shared_counters || at.shared;
    for_each_member(*at.group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        decisions[i] = judge(m, w, now, cost_of(p, *at.group, i));
        if (m.limits.shadow) {
            out.shadow_refused = out.shadow_refused || !decisions[i].admitted;
            return;
        }
        out.admitted = out.admitted && decisions[i].admitted;
        out.delay = std::max(out.delay, decisions[i].delay);
    });
}

microseconds memory_store::longest_wait(std::span<const located> at, std::span<const decision> decisions,
                                        time_point now)
{
    microseconds longest{0};
    std::size_t n = 0;
    for (const auto& part_at : at) {
        longest = std::max(longest, part_at.blocked_until - now);
        for (const auto& m : part_at.group->members()) {
            const auto& decided = decisions[n++];
            if (m.limits.limits.shadow || (decided.admitted && decided.retry_after == never))
                continue;
            if (decided.retry_after == never)
                return never;
            longest = std::max(longest, decided.retry_after);
        }
    }
    return longest;
}

void memory_store::charge_part(const part& p, located& at, std::string_view key, moment now,
                               std::span<const decision> decisions)
{
    if (at.group->has_logs())
        grow_logs(at, key, now);
    for_each_member(*at.group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        // A shadow rule that would have refused is not charged, as an enforced rule is not.
        if (m.limits.shadow && !decisions[i].admitted && !m.limits.count_refused)
            return;
        if (!decisions[i].admitted)
            limiter::charge_refused(m, w, now, cost_of(p, *at.group, i));
        else
            limiter::charge(m, w, now, cost_of(p, *at.group, i));
    });
}

void memory_store::charge_refused_part(const part& p, located& at, std::string_view key, moment now,
                                       std::span<decision> decisions)
{
    if (!at.group->counts_refused())
        return;
    if (at.group->has_logs())
        grow_logs(at, key, now);
    for_each_member(*at.group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        if (!m.limits.count_refused)
            return;
        const auto cost = cost_of(p, *at.group, i);
        limiter::charge_refused(m, w, now, cost);
        const auto recharged = judge(m, w, now, cost);
        if (!decisions[i].admitted)
            decisions[i] = recharged; // the wait is longer after the charge
        else if (!recharged.admitted)
            decisions[i].retry_after = recharged.retry_after; // it admitted, but refuses once the refusal is counted
    });
}

} // namespace headgate::limiter
