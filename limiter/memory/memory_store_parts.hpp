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
    time_point latest{}; // workers read the clock before they lock: time never runs back
    key_table table;
    std::map<std::uint32_t, overflow_counters> overflow; // by number; `located` points into it
    std::uint64_t shared_takes = 0;
    std::uint64_t merged_records = 0;

    // How far the wall clock is ahead of the store's time, and the same before its last step.
    microseconds wall_ahead{0}, wall_ahead_before{0};
    time_point wall_stepped_at = time_point::min();

    moment at(time_point t) const { return {t, wall_ahead}; }
    moment advance(time_point now)
    {
        latest = std::max(latest, now);
        return at(latest);
    }
    // Returns a moment of the past, with the wall clock of that moment.
    moment past(time_point t) const { return {t, t < wall_stepped_at ? wall_ahead_before : wall_ahead}; }
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

    moment at(time_point t) const { return in->at(t); }
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
                   std::uint8_t to_level, state fresh, moment now);

// Returns the level at which every sliding log of `to` can hold the records of `from`.
std::uint8_t level_for(const rule_group& to, const rule_group& from, std::uint8_t from_level);

} // namespace headgate::limiter
