#include "limiter/memory/key_table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headgate::limiter {

namespace {

constexpr std::size_t first_lines = 8;
constexpr std::size_t swept_per_insert = 2;  // keeps the table near the number of live keys
constexpr std::size_t swept_when_full = 256; // bounds the work of one insert
constexpr std::size_t header_units = 1;
static_assert(sizeof(entry_header) == 8);

// Keeps the index at most three quarters full.
constexpr std::size_t lines_for(std::size_t keys) { return (keys + keys / 3) / 8 + 1; }

} // namespace

time_point key_table::entry::blocked_until() const
{
    return time_point{microseconds{static_cast<std::int64_t>(words.data()[words.size()])}};
}

void key_table::entry::block_until(time_point t)
{
    words.data()[words.size()] = static_cast<std::uint64_t>(t.time_since_epoch().count());
}

time_point key_table::entry::recovered_at() const
{
    auto latest = is_blocked() ? blocked_until() : time_point{};
    std::size_t offset = 0;
    for (const auto& m : group->members()) {
        const auto n = group->words_of(m, header->level);
        latest = std::max(latest, limiter::recovered_at(m.limits, words.subspan(offset, n)));
        offset += n;
    }
    return latest;
}

bool key_table::entry::is_recovered(time_point now) const { return recovered_at() <= now; }

std::size_t key_table::units(const rule_group& group, std::uint8_t level, bool blocked, std::size_t key_bytes)
{
    return header_units + group.words(level) + (blocked ? 1 : 0) + (key_bytes + 7) / 8;
}

std::size_t key_table::entry_bytes(const rule_group& group)
{
    return 8 * (header_units + group.max_words() + 1 + max_key_bytes / 8);
}

std::size_t key_table::bound(std::size_t max_keys, std::size_t entry_bytes)
{
    // While the index grows, the old and the new one stand side by side.
    return entry_arena::bound(max_keys * entry_bytes) + 2 * sizeof(line) * std::max(first_lines, lines_for(max_keys));
}

void key_table::set_limits(std::size_t max_keys, std::size_t entry_bytes)
{
    max_keys_ = max_keys;
    arena_.set_limit(max_keys * entry_bytes);
    if (line_count_ == 0)
        replace_lines(std::min(first_lines, lines_for(max_keys)));
}

key_table::entry key_table::view(entry_arena::ref block) const
{
    auto* units = arena_.at(block);
    auto* header = reinterpret_cast<entry_header*>(units);
    const auto& group = groups_->by_id(header->group);
    const auto words = group.words(header->level);
    const auto* text =
        reinterpret_cast<const char*>(units + header_units + words + (header->flags & entry_header::blocked));
    return {header, &group, {units + header_units, words}, {text, header->key_bytes}};
}

key_table::entry key_table::at(slot s) { return view(block_at(s)); }

key_table::slot key_table::find(std::uint32_t tag, const group_lineage& lineage, std::string_view key) const
{
    for (std::size_t n = home(tag);; n = next_line(n)) {
        const auto& in = lines_[n];
        for (auto places = in.tagged(tag); places != 0; places &= places - 1) {
            const auto place = static_cast<std::size_t>(std::countr_zero(places));
            const auto e = view(in.blocks[place]);
            if (e.key == key && &e.group->lineage() == &lineage)
                return n * line::width + place;
        }
        if (in.has_room())
            return none;
    }
}

void key_table::set(slot s, std::uint32_t tag, entry_arena::ref block)
{
    lines_[s / line::width].tags[s % line::width] = tag;
    lines_[s / line::width].blocks[s % line::width] = block;
}

key_table::slot key_table::free_slot(std::uint32_t tag) const
{
    std::size_t n = home(tag);
    while (!lines_[n].has_room())
        n = next_line(n);
    return n * line::width + static_cast<std::size_t>(std::countr_zero(line::equal(lines_[n].blocks, 0)));
}

std::unique_ptr<key_table::line[]> key_table::replace_lines(std::size_t count)
{
    auto old = std::exchange(lines_, std::make_unique<line[]>(count));
    line_count_ = count;
    seen_lines_.store(lines_.get(), std::memory_order_relaxed);
    seen_count_.store(count, std::memory_order_relaxed);
    return old;
}

void key_table::grow_index()
{
    const auto old_count = line_count_;
    const auto old = replace_lines(std::max(line_count_, std::min(line_count_ * 2, lines_for(max_keys_))));
    for (std::size_t n = 0; n < old_count; ++n) {
        for (std::size_t i = 0; i < line::width; ++i) {
            if (old[n].blocks[i] != 0)
                set(free_slot(old[n].tags[i]), old[n].tags[i], old[n].blocks[i]);
        }
    }
    hand_ = 0;
    earliest_this_round_ = earliest_; // the hand restarts; the bound of the round before still holds
}

bool key_table::make_room(time_point now)
{
    sweep(swept_per_insert, now);
    if (size_ < max_keys_)
        return true;
    if (now >= earliest_)
        sweep(swept_when_full, now);
    return size_ < max_keys_;
}

key_table::slot key_table::insert(std::uint32_t tag, const rule_group& group, std::string_view key, std::uint8_t level,
                                  time_point now)
{
    if (!make_room(now))
        return none;
    const auto block = arena_.allocate(units(group, level, false, key.size()));
    if (block == 0)
        return none;
    if (lines_for(size_ + 1) > line_count_)
        grow_index();
    auto* unit = arena_.at(block);
    const entry_header header{group.id(), static_cast<std::uint16_t>(key.size()), level, 0};
    std::memcpy(unit, &header, sizeof header);
    const auto words = group.words(level);
    std::fill_n(unit + header_units, words, 0);
    std::memcpy(unit + header_units + words, key.data(), key.size());
    const auto s = free_slot(tag);
    set(s, tag, block);
    ++size_;
    return s;
}

void key_table::erase(slot s)
{
    const auto e = at(s);
    arena_.release(block_at(s), units(*e.group, e.header->level, e.is_blocked(), e.key.size()));
    --size_;
    close_gap(s);
}

// Keeps the invariant that no key is behind a line that has room: a key that had passed the line of the gap because it
// was full moves into the gap, which leaves a gap in turn.
void key_table::close_gap(slot gap)
{
    for (bool was_full = !lines_[gap / line::width].has_room(); was_full;) {
        const std::size_t to = gap / line::width;
        slot mover = none;
        std::size_t from = to;
        do {
            from = next_line(from);
            for (std::size_t i = 0; i < line::width && mover == none; ++i) {
                const std::size_t wanted = home(lines_[from].tags[i]);
                const bool passed = to < from ? wanted <= to || from < wanted : wanted <= to && from < wanted;
                if (lines_[from].blocks[i] != 0 && passed)
                    mover = from * line::width + i;
            }
        } while (mover == none && !lines_[from].has_room());
        if (mover == none)
            break;
        was_full = !lines_[from].has_room();
        if (gap < hand_ && mover >= hand_) // it moves to a slot that the hand has already passed
            note_recovery(at(mover).recovered_at());
        set(gap, tag_at(mover), block_at(mover));
        gap = mover;
    }
    set(gap, 0, 0);
}

bool key_table::reshape(slot s, const rule_group& group, std::uint8_t level, bool blocked)
{
    const auto old = at(s);
    const auto old_block = block_at(s);
    const auto old_units = units(*old.group, old.header->level, old.is_blocked(), old.key.size());
    const auto block = arena_.allocate(units(group, level, blocked, old.key.size()));
    if (block == 0)
        return false;
    auto* unit = arena_.at(block);
    entry_header header = *old.header;
    header.group = group.id();
    header.level = level;
    header.flags =
        static_cast<std::uint8_t>((header.flags & ~entry_header::blocked) | (blocked ? entry_header::blocked : 0));
    std::memcpy(unit, &header, sizeof header);
    const auto words = group.words(level) + (blocked ? 1u : 0u);
    std::fill_n(unit + header_units, words, 0);
    std::memcpy(unit + header_units + words, old.key.data(), old.key.size());
    set(s, tag_at(s), block);
    arena_.release(old_block, old_units);
    return true;
}

void key_table::note_recovery(time_point t)
{
    earliest_ = std::min(earliest_, t);
    earliest_this_round_ = std::min(earliest_this_round_, t);
}

std::size_t key_table::sweep(std::size_t budget, time_point now)
{
    std::size_t gone = 0;
    budget = std::min(budget, slots());
    for (; budget > 0; --budget) {
        if (is_used(hand_)) {
            const auto e = at(hand_);
            const auto when = e.recovered_at();
            if (when <= now && (e.header->flags & entry_header::pinned) == 0) {
                erase(hand_); // another entry may have moved into the slot: check it again
                ++gone;
                continue;
            }
            earliest_this_round_ = std::min(earliest_this_round_, when);
        }
        hand_ = hand_ + 1 == slots() ? 0 : hand_ + 1;
        if (hand_ == 0) {
            earliest_ = earliest_this_round_;
            earliest_this_round_ = time_point::max();
        }
    }
    evicted_ += gone;
    return gone;
}

} // namespace headgate::limiter
