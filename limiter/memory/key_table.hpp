// The keys of one shard: a hash index of 8-byte slots over entries in an arena. Not thread-safe; the shard's lock
// guards it.
//
// Slots are in lines of eight, one cache line each. A key is in the first line with room, counted from its home line.
// All eight slots of a line are compared at once, without a branch that could be mispredicted.
//
// An entry is one block: header (8 bytes), the state words of the group, one more word when the key is blocked, the
// text of the key. Invariants:
// - there are never more than `max_keys` entries, nor more bytes than `bound(...)`;
// - an entry is erased only when it is fully recovered, or explicitly by an operator or the caller;
// - entries do not move when others come and go: a pointer to their words is valid until they are resized or erased.
#pragma once

#include "limiter/memory/entry_arena.hpp"
#include "limiter/memory/group_directory.hpp"
#include "limiter/memory/key_hash.hpp"
#include "limiter/rule_group.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headgate::limiter {

struct entry_header
{
    std::uint32_t group; // rule_group::id
    std::uint16_t key_bytes;
    std::uint8_t level; // growth level of its sliding logs
    std::uint8_t flags;

    static constexpr std::uint8_t blocked = 1; // the word after the state is the end of the block
    static constexpr std::uint8_t pinned = 2;  // in use by a running take; must not be evicted
};

// Compares texts of a few words, for which a call to memcmp costs more than the comparison.
inline bool same_text(const char* a, const char* b, std::size_t n)
{
    const auto word = [](const char* at) {
        std::uint64_t w;
        std::memcpy(&w, at, sizeof w);
        return w;
    };
    if (n < 8)
        return n == 0 || std::memcmp(a, b, n) == 0;
    for (std::size_t i = 0; i + 8 < n; i += 8) {
        if (word(a + i) != word(b + i))
            return false;
    }
    return word(a + n - 8) == word(b + n - 8); // overlaps the word before
}

class key_table
{
public:
    using slot = std::size_t;
    static constexpr slot none = ~slot{0};

    struct entry
    {
        entry_header* header;
        const rule_group* group;
        state words;
        std::string_view key;

        bool is_blocked() const { return (header->flags & entry_header::blocked) != 0; }
        time_point blocked_until() const;
        void block_until(time_point t);
        bool is_recovered(time_point now) const;
        time_point recovered_at() const;
    };

    void attach(const group_directory& groups, chunk_source& memory)
    {
        groups_ = &groups;
        arena_.attach(memory);
    }
    void set_limits(std::size_t max_keys, std::size_t entry_bytes);
    static std::size_t entry_bytes(const rule_group& group); // the largest entry of the group
    static std::size_t bound(std::size_t max_keys, std::size_t entry_bytes);

    slot find(std::uint32_t tag, const group_lineage& lineage, std::string_view key) const;
    // Prefetches the home line. Needs no lock: reading an index that was just replaced does no harm.
    void prefetch(std::uint32_t tag) const
    {
        const auto* lines = seen_lines_.load(std::memory_order_relaxed);
        __builtin_prefetch(lines + (tag * seen_count_.load(std::memory_order_relaxed) >> 32));
    }
    // The fast path of `find`: returns the entry of a key that is decided by exactly `group` and is not blocked.
    // Returns null in all other cases; `find` handles those.
    entry_header* find_plain(std::uint32_t tag, const rule_group& group, std::string_view key) const
    {
        for (std::size_t n = home(tag);; n = next_line(n)) {
            const auto& in = lines_[n];
            for (auto places = in.tagged(tag); places != 0; places &= places - 1) {
                auto* units = arena_.at(in.blocks[std::countr_zero(places)]);
                __builtin_prefetch(units + 6); // an entry may span two cache lines: fetch both
                auto* header = reinterpret_cast<entry_header*>(units);
                if (header->group != group.id() || header->flags != 0 || header->key_bytes != key.size())
                    continue;
                const auto* text = units + 1 + group.words(header->level);
                if (same_text(reinterpret_cast<const char*>(text), key.data(), key.size()))
                    return header;
            }
            if (in.has_room())
                return nullptr;
        }
    }
    static std::uint64_t* words_after(entry_header* header) { return reinterpret_cast<std::uint64_t*>(header + 1); }
    entry at(slot s);
    bool is_used(slot s) const { return block_at(s) != 0; }
    slot slots() const { return line_count_ * line::width; }

    // Inserts a key with zero words. Returns `none` when no recovered entry can be evicted to make room.
    slot insert(std::uint32_t tag, const rule_group& group, std::string_view key, std::uint8_t level, time_point now);
    void erase(slot s);
    // Gives the entry another group, level or block flag and zeroes its words, so the caller copies them first. Returns
    // false when there is no memory; the entry is then unchanged.
    bool reshape(slot s, const rule_group& group, std::uint8_t level, bool blocked);

    // Notes that an entry may recover as early as `t`: after its first charge, a refund or a grant.
    void note_recovery(time_point t);
    // Evicts recovered entries among the next `budget` slots at the hand. Returns how many were evicted.
    std::size_t sweep(std::size_t budget, time_point now);

    std::size_t size() const { return size_; }
    std::size_t bytes() const { return arena_.bytes() + line_count_ * sizeof(line); }
    std::uint64_t evicted() const { return evicted_; }

private:
    struct alignas(64) line
    {
        static constexpr std::size_t width = 8;

        std::uint32_t tags[width];      // the upper halves of the hashes
        entry_arena::ref blocks[width]; // 0: empty

        // Returns one bit per slot. An empty slot may still have the tag of its former entry.
        unsigned tagged(std::uint32_t tag) const { return equal(tags, tag) & ~equal(blocks, 0); }
        bool has_room() const { return equal(blocks, 0) != 0; }
        static unsigned equal(const std::uint32_t (&places)[width], std::uint32_t value)
        {
#if defined(__SSE2__)
            const auto* at = reinterpret_cast<const __m128i*>(places);
            const auto wanted = _mm_set1_epi32(static_cast<int>(value));
            const auto low = _mm_cmpeq_epi32(_mm_load_si128(at), wanted);
            const auto high = _mm_cmpeq_epi32(_mm_load_si128(at + 1), wanted);
            const auto words = _mm_packs_epi32(low, high);
            return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(words, words))) & 0xff;
#else
            unsigned found = 0;
            for (unsigned i = 0; i < width; ++i)
                found |= static_cast<unsigned>(places[i] == value) << i;
            return found;
#endif
        }
    };

    std::uint32_t tag_at(slot s) const { return lines_[s / line::width].tags[s % line::width]; }
    entry_arena::ref block_at(slot s) const { return lines_[s / line::width].blocks[s % line::width]; }
    void set(slot s, std::uint32_t tag, entry_arena::ref block);
    std::unique_ptr<line[]> replace_lines(std::size_t count);
    // Returns the home line of a key.
    std::size_t home(std::uint32_t tag) const { return (std::uint64_t{tag} * line_count_) >> 32; }
    std::size_t next_line(std::size_t n) const { return n + 1 == line_count_ ? 0 : n + 1; }
    slot free_slot(std::uint32_t tag) const;
    void close_gap(slot gap);

    bool make_room(time_point now);
    void grow_index();
    entry view(entry_arena::ref block) const;
    static std::size_t units(const rule_group& group, std::uint8_t level, bool blocked, std::size_t key_bytes);

    // The members that every lookup reads come first, next to the shard's lock.
    std::unique_ptr<line[]> lines_;
    std::size_t line_count_ = 0;
    std::atomic<const line*> seen_lines_{nullptr}; // the same two, for readers without the lock
    std::atomic<std::uint64_t> seen_count_{0};
    entry_arena arena_;
    const group_directory* groups_ = nullptr;
    std::size_t size_ = 0;
    std::size_t max_keys_ = 0;
    std::uint64_t evicted_ = 0;

    // The eviction hand circles over the index. `earliest_` is a lower bound of the moment at which any entry can be
    // evicted, so that inserting into a full table of busy keys needs no search.
    slot hand_ = 0;
    time_point earliest_{};
    time_point earliest_this_round_ = time_point::max();
};

} // namespace headgate::limiter
