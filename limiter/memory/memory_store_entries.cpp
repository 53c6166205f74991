// Entries: finding the entry of a key, creating it, growing it, erasing it when it need not stay; and the overflow
// counters that replace entries when the store is full.
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>

namespace headgate::limiter {

// Finds the entry of a key, creates one, or falls back to the overflow counters.
memory_store::located memory_store::locate(shard& in, std::uint64_t hash, std::string_view key, const rule_group& group,
                                           moment now)
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
        shared = in.overflow.find(group.shared_number()); // adopt may have created it
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
        inherit(in, shared->second, at, now); // the key may have used the overflow counters before
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
            w[0] = 0; // requests of other keys are released from the overflow counters
        else if (recovered)
            begin(m, w, now);
    });
    if (recovered)
        in.overflow.erase(to.group->shared_number());
}

// Gives every sliding log of the entry room for one more record. Without memory for that, the log merges records, which
// is counted.
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

// Unpins the entry. Erases a new entry when the request charged nothing, so that looking and refusals leave no trace;
// otherwise tells the eviction hand when it will recover.
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

} // namespace headgate::limiter
