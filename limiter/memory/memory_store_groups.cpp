// Defining, changing and removing rule groups. Counters are converted, never reset.
#include "limiter/memory/memory_store_parts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace headgate::limiter {

void convert_words(const rule_group& from, std::uint8_t from_level, state old, const rule_group& to,
                   std::uint8_t to_level, state fresh, moment now)
{
    const auto how = from.base() == to.base() ? carry::all : carry::up_to_limit;
    for_each_member(to, to_level, fresh, [&](const meter& m, state w, std::size_t) {
        bool known = false;
        for_each_member(from, from_level, old, [&](const meter& before, state words, std::size_t) {
            if (known || before.limits.name != m.limits.name)
                return;
            known = true;
            convert(before, words, m, w, now, how);
        });
        if (!known)
            begin(m, w, now);
    });
}

std::uint8_t level_for(const rule_group& to, const rule_group& from, std::uint8_t from_level)
{
    if (!to.has_logs())
        return 0;
    return from.has_logs() ? from_level : std::uint8_t{0};
}

// Makes the overflow counters hold at least the use of a key that lost its entry.
void memory_store::share(shard& in, const rule_group& group, std::uint8_t level, state carried, moment now)
{
    auto& shared = overflow_of(in, group, now);
    std::size_t from = 0;
    for_each_member(group, shared.level, shared.words, [&](const meter& m, state w, std::size_t i) {
        const auto n = group.words_of(group.members()[i], level);
        const auto mine = carried.subspan(from, n);
        from += n;
        if (m.limits.kind == algorithm::concurrency)
            return charge(m, w, now, mine[0]); // they will be released from the overflow counters
        const auto left = judge(m, mine, now, 0).remaining, shared_left = judge(m, w, now, 0).remaining;
        if (left < shared_left)
            charge(m, w, now, shared_left - left);
    });
}

void memory_store::adopt(shard& in, key_table::slot s, const rule_group& group, moment now)
{
    const auto before = in.table.at(s);
    const auto& old_group = *before.group;
    const auto old_level = before.header->level;
    const auto level = level_for(group, old_group, old_level);
    const bool blocked = before.is_blocked();
    const auto until = blocked ? before.blocked_until() : time_point{};
    std::vector<std::uint64_t> old(before.words.begin(), before.words.end());
    if (!in.table.reshape(s, group, level, blocked)) {
        std::vector<std::uint64_t> carried(group.words(level));
        convert_words(old_group, old_level, old, group, level, carried, now);
        in.table.erase(s);
        share(in, group, level, carried, now);
        return;
    }
    auto after = in.table.at(s);
    if (blocked)
        after.block_until(until);
    convert_words(old_group, old_level, old, group, level, after.words, now);
    in.table.note_recovery(after.recovered_at());
}

void memory_store::adopt(const group_directory& directory, overflow_counters& shared, const rule_group& group,
                         moment now)
{
    const auto& old_group = directory.by_id(shared.group);
    const auto level = level_for(group, old_group, shared.level);
    std::vector<std::uint64_t> fresh(group.words(level));
    convert_words(old_group, shared.level, shared.words, group, level, fresh, now);
    shared = {group.id(), level, std::move(fresh)};
}

group_lineage* memory_store::lineage_of(std::string_view name) const
{
    std::lock_guard guard(registry_);
    const auto found = lineages_.find(name);
    return found == lineages_.end() ? nullptr : found->second.get();
}

std::uint32_t memory_store::new_id()
{
    const auto id = free_ids_.empty() ? next_id_++ : free_ids_.back();
    if (!free_ids_.empty())
        free_ids_.pop_back();
    return id;
}

// Makes the group's id known, so that entries may carry it.
void memory_store::publish(const rule_group& group)
{
    directory_.set(group.id(), &group);
    entry_bytes_ = std::max(entry_bytes_, key_table::entry_bytes(group));
    for (const auto& variant : group.variants())
        publish(*variant);
}

std::shared_ptr<const rule_group> memory_store::define(const std::string& name, std::vector<rule> rules, time_point now,
                                                       rule_variants variants)
{
    const auto fits = [](const std::vector<rule>& list) { return !list.empty() && list.size() <= max_rules_per_group; };
    if (!fits(rules) || !std::all_of(variants.begin(), variants.end(), [&](auto& v) { return fits(v.second); }))
        throw std::invalid_argument("a rule group needs 1 to 16 rules: " + name);
    std::lock_guard reload(reload_);
    std::lock_guard guard(registry_);
    auto& slot = lineages_[name];
    if (!slot) {
        slot = std::make_unique<group_lineage>();
        slot->name = name;
        slot->number = ++next_number_;
    }
    auto& lineage = *slot;
    const auto before = lineage.owner;
    if (before && same_rules(*before, rules) && same_variants(*before, variants))
        return before;
    if (free_ids_.size() + (group_directory::max_groups - next_id_) <= variants.size())
        throw std::length_error("too many rule groups in one store: " + name);

    const auto group = std::make_shared<rule_group>(lineage, new_id(), std::move(rules));
    for (auto& [variant, its_rules] : variants) {
        auto& number = lineage.variant_numbers[variant];
        if (number == 0)
            number = ++next_number_;
        group->add_variant(variant, new_id(), number, std::move(its_rules));
    }
    const auto entry_bytes_before = entry_bytes_;
    publish(*group);
    if (entry_bytes_ > entry_bytes_before)
        resize_shards();
    {
        std::lock_guard owner(lineage.owner_lock);
        lineage.owner = group;
        lineage.current.store(group.get(), std::memory_order_release);
    }
    if (before) {
        convert_all(*before, *group, now);
        free_ids_.push_back(before->id());
        for (const auto& variant : before->variants())
            free_ids_.push_back(variant->id());
    }
    return group;
}

// Converts overflow counters with their rules. Those of a removed variant are added to the group's own.
void memory_store::convert_shared(shard& in, const rule_group& from, const rule_group& to, moment now)
{
    const auto shared = in.overflow.find(from.shared_number());
    if (shared == in.overflow.end() || shared->second.group == to.id())
        return;
    adopt(directory_, shared->second, to, now);
    if (from.shared_number() == to.shared_number())
        return;
    auto carried = std::move(shared->second);
    in.overflow.erase(shared);
    share(in, to, carried.level, carried.words, now);
}

// Every request already reads the new version under its shard's lock, so one pass leaves no old entry.
void memory_store::convert_all(const rule_group& from, const rule_group& to, time_point now)
{
    for (auto& in : all_shards()) {
        std::lock_guard guard(in.lock);
        const auto at = in.advance(now);
        convert_shared(in, from, to, at);
        for (const auto& variant : from.variants())
            convert_shared(in, *variant, to.variant(variant->variant_name()), at);
        for (key_table::slot s = 0; s < in.table.slots(); ++s) {
            // Check the same slot again: when an entry is erased, another may move into it.
            while (in.table.is_used(s)) {
                const auto& old = *in.table.at(s).group;
                if (old.base() != &from)
                    break;
                adopt(in, s, to.variant(old.variant_name()), at);
            }
        }
    }
}

std::span<memory_store::shard> memory_store::all_shards() const
{
    return {shards_.get(), std::size_t{1} << shard_bits_};
}

void memory_store::resize_shards()
{
    const auto keys = std::max<std::size_t>(1, max_keys_ >> shard_bits_);
    memory_.expect(all_shards().size() * key_table::bound(keys, entry_bytes_));
    for (auto& in : all_shards()) {
        std::lock_guard guard(in.lock);
        in.table.set_limits(keys, entry_bytes_);
    }
}

std::size_t memory_store::bound_bytes() const
{
    std::lock_guard guard(registry_);
    const auto keys = std::max<std::size_t>(1, max_keys_ >> shard_bits_);
    const auto overflow = next_number_ * (entry_bytes_ + 64);
    const auto tables = all_shards().size() * key_table::bound(keys, entry_bytes_);
    const auto unused = tables >= chunk_source::large_store ? chunk_source::huge_page : 0;
    return tables + unused + all_shards().size() * (sizeof(shard) + overflow);
}

store_stats memory_store::stats() const
{
    store_stats sum;
    sum.bytes = memory_.unused_bytes();
    for (auto& in : all_shards()) {
        std::lock_guard guard(in.lock);
        sum.keys += in.table.size();
        sum.bytes += sizeof(shard) + in.table.bytes();
        sum.evicted += in.table.evicted();
        sum.shared_takes += in.shared_takes;
        sum.merged_records += in.merged_records;
        for (const auto& [_, shared] : in.overflow)
            sum.bytes += shared.words.size() * 8 + 64;
    }
    return sum;
}

std::vector<std::shared_ptr<const rule_group>> memory_store::groups() const
{
    std::lock_guard guard(registry_);
    std::vector<std::shared_ptr<const rule_group>> all;
    for (const auto& [_, lineage] : lineages_) {
        if (!lineage->owner)
            continue; // define() failed
        all.push_back(lineage->owner);
        for (const auto& variant : lineage->owner->variants())
            all.push_back(keep(lineage->owner, *variant));
    }
    return all;
}

void memory_store::visit(std::size_t shard_number, const entry_visitor& see) const
{
    auto& in = shards_[shard_number];
    std::lock_guard guard(in.lock);
    for (key_table::slot s = 0; s < in.table.slots(); ++s) {
        if (in.table.is_used(s))
            see(in.table.at(s), in.wall_ahead);
    }
}

bool memory_store::restore(const rule_group& group, const stored_entry& from, time_point written_at, time_point now)
{
    const auto hash = hash_of(group.lineage(), from.key);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    auto& in = shard_of(hash);
    std::lock_guard guard(in.lock);
    const auto at = in.advance(now);
    if (in.table.find(tag, group.lineage(), from.key) != key_table::none)
        return true; // a request was faster, and its counters are newer
    const auto level = level_for(group, *from.written_under, from.level);
    auto s = in.table.insert(tag, group, from.key, level, at);
    if (s == key_table::none)
        return false;
    // From the wall clock to the store's time.
    const auto ahead = std::max(written_at - at.wall(), microseconds{0});
    if (from.blocked_until && in.table.reshape(s, group, level, true))
        in.table.at(s).block_until(*from.blocked_until - ahead - at.wall_ahead);
    for_each_member(*from.written_under, from.level, from.words, [&](const meter& m, state w, std::size_t) {
        limiter::rewind(m, w, written_at, at.wall());
        limiter::shift(m, w, -at.wall_ahead);
    });
    const auto e = in.table.at(s);
    convert_words(*from.written_under, from.level, from.words, group, level, e.words, at);
    for_each_member(group, level, e.words, [](const meter& m, state w, std::size_t) {
        if (m.limits.kind == algorithm::concurrency)
            w[0] = 0; // nothing is in flight when the process starts
    });
    if (e.is_recovered(at))
        in.table.erase(s);
    else
        in.table.note_recovery(e.recovered_at());
    return true;
}

void memory_store::follow_wall(microseconds wall_ahead, time_point now)
{
    for (auto& in : all_shards()) {
        std::lock_guard guard(in.lock);
        if (in.wall_ahead == wall_ahead)
            continue;
        in.wall_ahead_before = std::exchange(in.wall_ahead, wall_ahead);
        const auto at = in.advance(now);
        in.wall_stepped_at = at;
        const auto follow = [&](const meter& m, state w, std::size_t) {
            limiter::follow_wall(m, w, in.wall_ahead_before, at);
        };
        for (auto& [_, shared] : in.overflow)
            for_each_member(directory_.by_id(shared.group), shared.level, shared.words, follow);
        for (key_table::slot s = 0; s < in.table.slots(); ++s) {
            if (!in.table.is_used(s))
                continue;
            const auto e = in.table.at(s);
            for_each_member(*e.group, e.header->level, e.words, follow);
        }
        in.table.note_recovery(at); // windows may have ended
    }
}

} // namespace headgate::limiter
