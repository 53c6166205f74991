// Judging and charging. Operators' verbs, reservations and reloads have files of their own.
#include "limiter/memory/memory_store.hpp"

#include "limiter/core/usual.hpp"
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
        throw std::invalid_argument("a memory store needs room for one key at least");
    // Small stores have few shards, so that their bound is met evenly.
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

// The low bits choose the shard, the high 32 the place in its index.
memory_store::shard& memory_store::shard_of(std::uint64_t hash) const
{
    return shards_[hash & ((std::size_t{1} << shard_bits_) - 1)];
}

std::uint64_t cost_of(const part& p, const rule_group& judging, std::size_t i)
{
    if (p.group == &judging)
        return p.costs.empty() ? 1 : p.costs[i];
    // The rules are newer than the caller's. It will release only what it knows to be in flight.
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

// Locks every shard that the parts touch, each once, lowest address first: two chains can never wait for each other.
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

    // One moment for the whole chain, never earlier than any of its shards has seen.
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

// Finds the part's entry, makes one, or falls back on the overflow counters.
memory_store::located memory_store::locate(shard& in, std::uint64_t hash, std::string_view key, const rule_group& group,
                                           time_point now)
{
    located at;
    at.in = &in;
    at.group = &group;
    at.tag = static_cast<std::uint32_t>(hash >> 32);
    auto& lineage = group.lineage();
    auto shared = in.overflow.empty() ? in.overflow.end() : in.overflow.find(group.shared_number());
    if (shared != in.overflow.end() && shared->second.group != group.id())
        adopt(directory_, shared->second, group, now);
    auto s = in.table.find(at.tag, lineage, key);
    if (s != key_table::none && in.table.at(s).header->group != group.id()) {
        adopt(in, s, group, now);
        s = in.table.find(at.tag, lineage, key);
        shared = in.overflow.find(group.shared_number()); // it may be there now
    }
    if (s == key_table::none) {
        const auto level = shared == in.overflow.end() ? std::uint8_t{0} : shared->second.level;
        s = in.table.insert(at.tag, group, key, level, now);
        at.fresh = s != key_table::none;
        if (!at.fresh) {
            at.shared = &overflow_of(in, group, now);
            at.words = at.shared->words;
            at.level = at.shared->level;
            ++in.shared_takes;
            return at;
        }
    }
    const auto e = in.table.at(s);
    at.header = e.header;
    at.words = e.words;
    at.level = e.header->level;
    if (e.is_blocked())
        at.blocked_until = e.blocked_until();
    if (at.fresh && shared != in.overflow.end())
        inherit(in, shared->second, at, now); // it may have been using the shared counters all along
    else if (at.fresh)
        for_each_member(group, at.level, at.words, [&](const meter& m, state w, std::size_t) { begin(m, w, now); });
    return at;
}

memory_store::overflow_counters& memory_store::overflow_of(shard& in, const rule_group& group, time_point now)
{
    auto& shared = in.overflow[group.shared_number()];
    if (shared.words.empty()) {
        shared.group = group.id();
        shared.words.resize(group.words(0));
        for_each_member(group, 0, shared.words, [&](const meter& m, state w, std::size_t) { begin(m, w, now); });
    }
    return shared;
}

void memory_store::inherit(shard& in, overflow_counters& shared, const located& to, time_point now)
{
    bool recovered = true;
    for_each_member(*to.group, shared.level, shared.words,
                    [&](const meter& m, state w, std::size_t) { recovered = recovered && recovered_at(m, w) <= now; });
    std::copy(shared.words.begin(), shared.words.end(), to.words.begin());
    for_each_member(*to.group, to.level, to.words, [&](const meter& m, state w, std::size_t) {
        if (m.limits.kind == algorithm::concurrency)
            w[0] = 0; // what others have in flight is released from the shared counters, never from here
        else if (recovered)
            begin(m, w, now);
    });
    if (recovered)
        in.overflow.erase(to.group->shared_number());
}

bool memory_store::take_known(const part& p, time_point now, std::span<decision> decisions, verdict& out)
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
    std::array<pending_charge, max_rules_a_group> charges;
    auto* at = key_table::words_behind(header);
    for (std::size_t i = 0; i < count; at += members[i++].words) {
        const auto& m = members[i].limits;
        const auto cost = p.costs.empty() ? 1 : p.costs[i];
        auto& said = decisions[i];
        if (!admit_usual(m, at, now, cost, said, charges[i])) {
            said = judge(m, {at, members[i].words}, now, cost);
            charges[i] = {at, no_value};
        }
        if (!said.admitted)
            return refuse_known(p, key_table::words_behind(header), now, decisions, out);
        if (!m.limits.shadow)
            out.delay = std::max(out.delay, said.delay);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto& c = charges[i];
        if (c.value != no_value)
            *c.word = c.value;
        else
            charge(members[i].limits, {c.word, members[i].words}, now, p.costs.empty() ? 1 : p.costs[i]);
    }
    out.charged_at = now;
    out.groups[0] = &group;
    return true;
}

// What `decide` says of a key whose rules charge nothing when they refuse. False, and nothing said, when one does
// charge, or when only shadow rules refuse: then the request passes.
bool memory_store::refuse_known(const part& p, std::uint64_t* words, time_point now, std::span<decision> decisions,
                                verdict& out)
{
    if (p.group->counts_refused())
        return false;
    out = {};
    microseconds wait{0};
    std::size_t i = 0;
    for (const auto& [m, size, _] : p.group->members()) {
        const const_state s{words, size};
        auto& said = decisions[i];
        said = judge(m, s, now, p.costs.empty() ? 1 : p.costs[i]);
        ++i;
        words += size;
        if (said.admitted) {
            // It is not charged: what it says must not count this request.
            if (!m.limits.shadow)
                out.delay = std::max(out.delay, said.delay);
            said = judge(m, s, now, 0);
            said.admitted = true;
            said.retry_after = never;
        } else if (m.limits.shadow) {
            out.shadow_refused = true;
        } else {
            out.admitted = false;
            wait = said.retry_after == never || wait == never ? never : std::max(wait, said.retry_after);
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
    if (parts.size() != 1 || !take_known(parts[0], now, decisions, out))
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
        at[i] = locate(locked.in(i), locked.hash(i), locked.key(i), current_group(parts[i], out), now);
        out.groups[i] = at[i].group;
        if (parts.size() > 1 && at[i].header)
            at[i].header->flags |= entry_header::pinned;
        judge_part(parts[i], at[i], now, decisions.subspan(n, at[i].group->size()), out);
        n += at[i].group->size();
    }
    const bool charges = why == purpose::take && out.admitted;
    n = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto said = decisions.subspan(n, at[i].group->size());
        n += said.size();
        // Charge only after every rule admitted: a refused request must not use up the others.
        if (charges)
            charge_part(parts[i], at[i], locked.key(i), now, said);
        else if (why == purpose::take && !out.blocked)
            charge_refused_part(parts[i], at[i], locked.key(i), now, said);
    }
    if (!out.admitted) {
        say_what_is_left(std::span(at.data(), parts.size()), decisions, now);
        out.retry_after = longest_wait(std::span(at.data(), parts.size()), decisions, now);
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
        leave(at[i], locked.key(i), now, why);
}

// Rules that would have admitted were not charged after all: what they say must not count the refused request.
void memory_store::say_what_is_left(std::span<const located> at, std::span<decision> decisions, time_point now)
{
    std::size_t n = 0;
    for (const auto& part_at : at) {
        for_each_member(*part_at.group, part_at.level, part_at.words, [&](const meter& m, state w, std::size_t) {
            auto& said = decisions[n++];
            if (!said.admitted)
                return;
            const auto wait = said.retry_after;
            said = judge(m, w, now, 0);
            said.admitted = true;
            said.retry_after = wait;
        });
    }
}

// The version every request is judged by. Read under the shard's lock, which a reload takes after it has set it.
const rule_group& memory_store::current_group(const part& p, verdict& out)
{
    auto& lineage = p.group->lineage();
    if (lineage.current.load(std::memory_order_acquire) == p.group->base())
        return *p.group;
    std::lock_guard guard(lineage.owner_lock);
    out.kept.push_back(lineage.owner);
    return out.kept.back()->variant(p.group->variant_name());
}

void memory_store::judge_part(const part& p, const located& at, time_point now, std::span<decision> said, verdict& out)
{
    out.shared_counters = out.shared_counters || at.shared;
    for_each_member(*at.group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        said[i] = judge(m, w, now, cost_of(p, *at.group, i));
        if (m.limits.shadow) {
            out.shadow_refused = out.shadow_refused || !said[i].admitted;
            return;
        }
        out.admitted = out.admitted && said[i].admitted;
        out.delay = std::max(out.delay, said[i].delay);
    });
    if (at.blocked_until > now)
        out.admitted = false, out.blocked = true;
}

microseconds memory_store::longest_wait(std::span<const located> at, std::span<const decision> decisions,
                                        time_point now)
{
    microseconds longest{0};
    std::size_t n = 0;
    for (const auto& part_at : at) {
        longest = std::max(longest, part_at.blocked_until - now);
        for (const auto& m : part_at.group->members()) {
            const auto& said = decisions[n++];
            if (m.limits.limits.shadow || (said.admitted && said.retry_after == never))
                continue;
            if (said.retry_after == never)
                return never;
            longest = std::max(longest, said.retry_after);
        }
    }
    return longest;
}

void memory_store::charge_part(const part& p, located& at, std::string_view key, time_point now,
                               std::span<const decision> said)
{
    if (at.group->has_logs())
        grow_logs(at, key, now);
    for_each_member(*at.group, at.level, at.words, [&](const meter& m, state w, std::size_t i) {
        // A shadow rule that would have refused behaves as if it had: it takes nothing.
        if (m.limits.shadow && !said[i].admitted && !m.limits.count_refused)
            return;
        if (!said[i].admitted)
            limiter::charge_refused(m, w, now, cost_of(p, *at.group, i));
        else
            limiter::charge(m, w, now, cost_of(p, *at.group, i));
    });
}

void memory_store::charge_refused_part(const part& p, located& at, std::string_view key, time_point now,
                                       std::span<decision> said)
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
        const auto now_says = judge(m, w, now, cost);
        if (!said[i].admitted)
            said[i] = now_says; // the wait is longer now
        else if (!now_says.admitted)
            said[i].retry_after = now_says.retry_after; // it did not refuse, but counting the refusal makes it
    });
}

// Gives every sliding log of the entry room for one more record. Where there is no memory for it the log merges
// records, and that is counted.
void memory_store::grow_logs(located& at, std::string_view key, time_point now)
{
    bool full = false;
    for_each_member(*at.group, at.level, at.words,
                    [&](const meter& m, state w, std::size_t) { full = full || log_is_full(m, w, now); });
    const auto level = static_cast<std::uint8_t>(at.level + 1);
    const auto words = at.group->words(level);
    if (!full || words == at.words.size())
        return;
    std::vector<std::uint64_t> old(at.words.begin(), at.words.end());
    if (at.shared) {
        at.shared->words.assign(words, 0);
        at.shared->level = level;
        at.words = at.shared->words;
    } else if (!grow_entry(at, key, level)) {
        ++at.in->merged_records;
        return;
    }
    std::size_t from = 0;
    for_each_member(*at.group, level, at.words, [&](const meter& m, state w, std::size_t i) {
        const auto n = at.group->words_of(at.group->members()[i], at.level);
        const auto before = state(old).subspan(from, n);
        from += n;
        if (w.size() == n)
            std::copy(before.begin(), before.end(), w.begin());
        else
            convert(m, before, m, w, now);
    });
    at.level = level;
}

bool memory_store::grow_entry(located& at, std::string_view key, std::uint8_t level)
{
    auto& table = at.in->table;
    const auto s = table.find(at.tag, at.group->lineage(), key);
    const bool blocked = table.at(s).is_blocked();
    if (!table.reshape(s, *at.group, level, blocked))
        return false;
    auto e = table.at(s);
    if (blocked)
        e.block_until(at.blocked_until);
    at.header = e.header;
    at.words = e.words;
    return true;
}

// A key that was only looked at or refused must leave no trace; one that was charged for the first time is made known
// to the eviction hand.
void memory_store::leave(const located& at, std::string_view key, time_point now, purpose why)
{
    if (!at.header)
        return;
    at.header->flags &= static_cast<std::uint8_t>(~entry_header::pinned);
    if (!at.fresh)
        return;
    auto& table = at.in->table;
    const auto s = table.find(at.tag, at.group->lineage(), key);
    const auto when = table.at(s).recovered_at();
    if (why == purpose::look || when <= now)
        table.erase(s);
    else
        table.note_recovery(when);
}

void memory_store::give_back(std::span<const part> parts, time_point charged_at, time_point now)
{
    for (const auto& p : parts)
        settle_part(p, {}, charged_at, now);
}

} // namespace headgate::limiter
