// Operators' verbs on one key: inspect, list, reset, grant, block, unblock.
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>

namespace headgate::limiter {

namespace {

key_report report_of(const key_table::entry& e, moment now)
{
    key_report out;
    {
        std::lock_guard owner(e.group->lineage().owner_lock);
        const auto& owned = e.group->lineage().owner;
        out.rules = keep(owned, owned->variant(e.group->variant_name()));
    }
    out.group = e.group->name();
    out.key = e.key;
    if (e.is_blocked() && e.blocked_until() > now.time)
        out.blocked_for = e.blocked_until() - now.time;
    for_each_member(*e.group, e.header->level, e.words,
                    [&](const meter& m, state w, std::size_t) { out.decisions.push_back(judge(m, w, now, 0)); });
    return out;
}

} // namespace

template <class Act>
bool memory_store::with_entry(std::string_view group, std::string_view key, time_point now, Act act)
{
    auto* lineage = lineage_of(group);
    if (!lineage)
        return false;
    const bounded_key bounded(key);
    const auto hash = hash_of(*lineage, bounded.view());
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    const auto at = in.advance(now);
    const auto s = in.table.find(static_cast<std::uint32_t>(hash >> 32), *lineage, bounded.view());
    if (s == key_table::none)
        return false;
    act(in, s, at);
    return true;
}

std::optional<key_report> memory_store::inspect(std::string_view group, std::string_view key, time_point now)
{
    std::optional<key_report> out;
    with_entry(group, key, now, [&](shard& in, key_table::slot s, moment at) { out = report_of(in.table.at(s), at); });
    return out;
}

std::vector<key_report> memory_store::list(std::string_view group, std::string_view key_prefix, std::size_t most,
                                           time_point now)
{
    std::vector<key_report> out;
    for (std::size_t i = 0; i < shard_count() && out.size() < most; ++i) {
        visit(i, [&](const key_table::entry& e, microseconds wall_ahead) {
            if (out.size() < most && e.group->name() == group && e.key.starts_with(key_prefix))
                out.push_back(report_of(e, {now, wall_ahead}));
        });
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return out;
}

bool memory_store::reset(std::string_view group, std::string_view key, time_point now)
{
    return with_entry(group, key, now, [&](shard& in, key_table::slot s, moment at) {
        const auto e = in.table.at(s);
        for_each_member(*e.group, e.header->level, e.words, [](const meter& m, state w, std::size_t) {
            if (m.limits.kind != algorithm::concurrency) // requests in flight stay in flight
                std::fill(w.begin(), w.end(), 0);
        });
        in.table.note_recovery(at);
    });
}

std::uint64_t memory_store::grant(std::string_view group, std::string_view key, std::uint64_t n, time_point now)
{
    std::uint64_t most = 0;
    with_entry(group, key, now, [&](shard& in, key_table::slot s, moment at) {
        const auto e = in.table.at(s);
        for_each_member(*e.group, e.header->level, e.words, [&](const meter& m, state w, std::size_t) {
            if (m.limits.kind != algorithm::concurrency)
                most = std::max(most, limiter::grant(m, w, at, n));
        });
        in.table.note_recovery(at);
    });
    return most;
}

bool memory_store::block(std::string_view group, std::string_view key, time_point until, time_point now)
{
    auto* lineage = lineage_of(group);
    if (!lineage)
        return false;
    const bounded_key bounded(key);
    const auto hash = hash_of(*lineage, bounded.view());
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    const auto at = in.advance(now);
    // Use the rules that last decided for the key: those of its plan.
    const auto* rules = lineage->current.load(std::memory_order_acquire);
    if (const auto known = in.table.find(tag, *lineage, bounded.view()); known != key_table::none)
        rules = &rules->variant(in.table.at(known).group->variant_name());
    // A new key gets an entry as a request would create it, with the use of the overflow counters.
    if (!locate(in, hash, bounded.view(), *rules, at).header)
        return false;
    const auto s = in.table.find(tag, *lineage, bounded.view());
    auto e = in.table.at(s);
    if (!e.is_blocked()) {
        const std::vector<std::uint64_t> words(e.words.begin(), e.words.end());
        if (!in.table.reshape(s, *e.group, e.header->level, true))
            return false;
        e = in.table.at(s);
        std::copy(words.begin(), words.end(), e.words.begin());
    }
    e.block_until(until);
    in.table.note_recovery(e.recovered_at());
    return true;
}

bool memory_store::unblock(std::string_view group, std::string_view key, time_point now)
{
    bool was_blocked = false;
    with_entry(group, key, now, [&](shard& in, key_table::slot s, moment at) {
        auto e = in.table.at(s);
        was_blocked = e.is_blocked() && e.blocked_until() > at.time;
        if (was_blocked)
            e.block_until(at);
        in.table.note_recovery(at);
    });
    return was_blocked;
}

} // namespace headgate::limiter
