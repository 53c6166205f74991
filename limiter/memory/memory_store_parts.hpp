// The insides of memory_store that its source files share.
#pragma once

#include "limiter/memory/bounded_key.hpp"
#include "limiter/memory/memory_store.hpp"

namespace headgate::limiter {

// What new keys of a group share while there is no room for them.
struct memory_store::overflow_counters
{
    std::uint32_t group = 0; // id of the rules the words were written under
    std::uint8_t level = 0;
    std::vector<std::uint64_t> words;
};

struct alignas(64) memory_store::shard
{
    // What every request writes stands together: one cache line to hand from core to core.
    shard_lock lock;
    time_point latest{}; // time never runs backwards here: a step back counts as no time at all
    key_table table;
    std::map<std::uint32_t, overflow_counters> overflow; // by lineage; a part of a chain points into it
    std::uint64_t shared_takes = 0;
    std::uint64_t merged_records = 0;

    time_point advance(time_point now)
    {
        latest = std::max(latest, now);
        return latest;
    }
};

// Where the state of one part of a request is.
struct memory_store::located
{
    shard* in = nullptr;
    const rule_group* group = nullptr;
    state words;
    entry_header* header = nullptr; // null: overflow counters, or nothing there at all
    overflow_counters* shared = nullptr;
    std::uint32_t tag = 0;
    std::uint8_t level = 0;
    bool fresh = false; // inserted for this request
    time_point blocked_until{};
};

struct memory_store::open_reservation
{
    struct held_part
    {
        std::shared_ptr<const rule_group> group;
        std::string key;
        std::vector<std::uint64_t> costs;
    };
    std::vector<held_part> parts;
    time_point charged_at{};
    std::multimap<time_point, reservation>::iterator expiry;
};

// Calls f(member, its words, its number) for each rule of a group on one entry's words.
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

// The cost a part sets for the i-th rule of `judging`, which may be a newer version of the part's own group.
std::uint64_t cost_of(const part& p, const rule_group& judging, std::size_t i);

// Converts the words of an entry from one version of a group to another, rule by rule of the same name.
void convert_words(const rule_group& from, std::uint8_t from_level, state old, const rule_group& to,
                   std::uint8_t to_level, state fresh, time_point now);

// The level at which every sliding log of `to` can hold what `from` held.
std::uint8_t level_for(const rule_group& to, const rule_group& from, std::uint8_t from_level);

} // namespace headgate::limiter
