// The internals of memory_store that its source files share.
#pragma once

#include "limiter/memory/bounded_key.hpp"
#include "limiter/memory/memory_store.hpp"

namespace headgate::limiter {

// The counters that new keys of a group share when there is no room for entries.
struct memory_store::overflow_counters
{
    std::uint32_t group = 0; // id of the group that the words belong to
    std::uint8_t level = 0;
    std::vector<std::uint64_t> words;
};

struct alignas(64) memory_store::shard
{
    // What every request writes is together, in one cache line that moves from core to core.
    shard_lock lock;
    time_point latest{}; // a clock that steps back counts as no time
    key_table table;
    std::map<std::uint32_t, overflow_counters> overflow; // by number; `located` points into it
    std::uint64_t shared_takes = 0;
    std::uint64_t merged_records = 0;

    time_point advance(time_point now)
    {
        latest = std::max(latest, now);
        return latest;
    }
};

// The location of the state of one part of a request.
struct memory_store::located
{
    shard* in = nullptr;
    const rule_group* group = nullptr;
    state words;
    entry_header* header = nullptr; // null: overflow counters
    overflow_counters* shared = nullptr;
    std::uint32_t tag = 0;
    std::uint8_t level = 0;
    bool fresh = false; // created for this request
    time_point blocked_until{};
};

// Calls f(meter, its words, its index) for each rule of a group on the words of one entry.
template <class F>
void for_each_member(const rule_group& group, std::uint8_t level, state words, F f)
{
    std::size_t offset = 0, i = 0;
    for (const auto& m : group.members()) {
        const auto n = group.words_of(m, level);
        f(m.limits, words.subspan(offset, n), i++);
        offset += n;
    }
}

// Returns the cost that a part sets for the i-th rule of `judging`, which may be a newer version of the part's own
// group.
std::uint64_t cost_of(const part& p, const rule_group& judging, std::size_t i);

// Converts the words of an entry from one version of a group to another; rules match by name.
void convert_words(const rule_group& from, std::uint8_t from_level, state old, const rule_group& to,
                   std::uint8_t to_level, state fresh, time_point now);

// Returns the level at which every sliding log of `to` can hold the records of `from`.
std::uint8_t level_for(const rule_group& to, const rule_group& from, std::uint8_t from_level);

} // namespace headgate::limiter
