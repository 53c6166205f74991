// The memory store: shared by all workers of a process, sharded by key, bounded. It never forgets a key that has not
// recovered.
//
// A chain over several keys is decided at once: the shards of all its keys are locked, in a fixed order, while it is
// judged and charged. When the store is full and no key has recovered, new keys share overflow counters; a key that
// gets an entry later starts with the use of those counters, so a full store never gives out a fresh quota.
#pragma once

#include "limiter/memory/key_hash.hpp"
#include "limiter/memory/key_table.hpp"
#include "limiter/memory/shard_lock.hpp"
#include "limiter/store.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace headgate::limiter {

class memory_store
{
public:
    explicit memory_store(std::size_t max_keys);
    memory_store(std::size_t max_keys, hash_secret secret);
    ~memory_store();

    // Defines or changes the rules that share a key. A change converts every counter of the group before it returns. A
    // part may name one of the variants instead of the returned group.
    std::shared_ptr<const rule_group> define(const std::string& name, std::vector<rule> rules, time_point now,
                                             rule_variants variants = {});

    // Charges all rules if all admit, otherwise none. `decisions` receives one decision per rule, part by part.
    verdict take(std::span<const part> parts, time_point now, std::span<decision> decisions);
    // Decides like take() and changes nothing.
    verdict look(std::span<const part> parts, time_point now, std::span<decision> decisions);
    // Gives back what an admitted take has charged, as far as it still counts.
    void give_back(std::span<const part> parts, time_point charged_at, time_point now);
    // Corrects a charge of `charged.costs`, made at `charged_at`, to `actual`: one cost per rule, more or less than was
    // charged. Without actual costs everything is given back.
    void correct(const part& charged, std::span<const std::uint64_t> actual, time_point charged_at, time_point now);

    // Operators' verbs. `group` is the name given to define().
    std::optional<key_report> inspect(std::string_view group, std::string_view key, time_point now);
    std::vector<key_report> list(std::string_view group, std::string_view key_prefix, std::size_t most, time_point now);
    bool reset(std::string_view group, std::string_view key, time_point now);
    // Makes room for up to n more under every rate of the key. Returns the largest amount that a rule had room for.
    std::uint64_t grant(std::string_view group, std::string_view key, std::uint64_t n, time_point now);
    bool block(std::string_view group, std::string_view key, time_point until, time_point now);
    bool unblock(std::string_view group, std::string_view key, time_point now);

    store_stats stats() const;
    std::size_t max_keys() const { return max_keys_; }
    // Returns the most bytes the store can take with the groups it has now.
    std::size_t bound_bytes() const;

    // Returns a lock; while it is held no define() changes a group, so that group ids are stable.
    [[nodiscard]] std::unique_lock<std::mutex> hold_rules() const { return std::unique_lock(reload_); }
    // Calls `see` for every entry of one shard, under the shard's lock: `see` must be quick. It also receives how far
    // the wall clock is ahead of the times in the entry.
    using entry_visitor = std::function<void(const key_table::entry&, microseconds wall_ahead)>;
    std::size_t shard_count() const { return std::size_t{1} << shard_bits_; }
    void visit(std::size_t shard_number, const entry_visitor& see) const;
    std::vector<std::shared_ptr<const rule_group>> groups() const;
    // One entry of a snapshot, whose times are those of the wall clock.
    struct stored_entry
    {
        const rule_group* written_under;
        std::uint8_t level;
        state words;
        std::string_view key;
        std::optional<time_point> blocked_until;
    };
    // Restores an entry, converted from the rules it was written under. A state from a clock that was ahead counts as
    // if it had been written now. Returns false when there is no room.
    bool restore(const rule_group& group, const stored_entry& from, time_point written_at, time_point now);

    // Moves the windows that follow the wall clock, when it has stepped. All other limits keep the store's steady time.
    void follow_wall(microseconds wall_ahead, time_point now);

private:
    struct overflow_counters;
    struct shard;
    struct located;
    class locked_parts;
    enum class purpose
    {
        take,
        look
    };

    // The fast path: one known key that is not blocked. It either admits, or refuses when no rule charges refusals.
    // Returns false and changes nothing in all other cases, which `decide` handles.
    bool take_fast(const part& p, time_point now, std::span<decision> decisions, verdict& out);
    static bool refuse_fast(const part& p, std::uint64_t* words, moment now, std::span<decision> decisions,
                            verdict& out);

    // The steps of a decision, in order.
    void decide(std::span<const part> parts, time_point now, std::span<decision> decisions, purpose why, verdict& out);
    static const rule_group& current_group(const part& p, verdict& out);
    located locate(shard& in, std::uint64_t hash, std::string_view key, const rule_group& group, moment now);
    static void judge_part(const part& p, const located& at, moment now, std::span<decision> decisions, verdict& out);
    static void charge_part(const part& p, located& at, std::string_view key, moment now,
                            std::span<const decision> decisions);
    static void charge_refused_part(const part& p, located& at, std::string_view key, moment now,
                                    std::span<decision> decisions);
    static microseconds longest_wait(std::span<const located> at, std::span<const decision> decisions, time_point now);
    static void exclude_refused_request(std::span<const located> at, std::span<decision> decisions, time_point now);
    static void leave(const located& at, std::string_view key, time_point now, purpose why);

    static overflow_counters& overflow_of(shard& in, const rule_group& group, time_point now);
    static void inherit(shard& in, overflow_counters& shared, const located& to, time_point now);
    static void grow_logs(located& at, std::string_view key, time_point now);
    static bool grow_entry(located& at, std::string_view key, std::uint8_t level);
    // Convert an entry, or overflow counters, to the current version of the group. When there is no memory for the
    // entry, its use is added to the overflow counters.
    static void share(shard& in, const rule_group& group, std::uint8_t level, state carried, moment now);
    static void adopt(shard& in, key_table::slot s, const rule_group& group, moment now);
    static void adopt(const group_directory& directory, overflow_counters& shared, const rule_group& group, moment now);
    static void release_shared(shard& in, const rule_group& group, std::size_t rule, std::uint64_t cost);

    group_lineage* lineage_of(std::string_view name) const;
    std::uint64_t hash_of(const group_lineage& lineage, std::string_view key) const;
    shard& shard_of(std::uint64_t hash) const;
    // Calls `act` with the key's entry under its lock. Returns false when the key has no entry.
    template <class Act>
    bool with_entry(std::string_view group, std::string_view key, time_point now, Act act);
    void resize_shards();
    std::uint32_t new_id();
    void publish(const rule_group& group);
    void convert_all(const rule_group& from, const rule_group& to, time_point now);
    void convert_shared(shard& in, const rule_group& from, const rule_group& to, moment now);
    std::span<shard> all_shards() const;

    std::size_t max_keys_;
    key_hash hash_;
    std::size_t shard_bits_ = 0;
    chunk_source memory_;
    std::unique_ptr<shard[]> shards_;

    // reload_ serializes define(), and excludes it while a snapshot is written. It is locked before registry_, which
    // guards groups and their ids. Requests lock neither.
    mutable std::mutex reload_;
    mutable std::mutex registry_;
    std::map<std::string, std::unique_ptr<group_lineage>, std::less<>> lineages_;
    group_directory directory_;
    std::vector<std::uint32_t> free_ids_;
    std::uint32_t next_id_ = 0;
    std::uint32_t next_number_ = 0; // numbers lineages and the overflow counters of variants
    std::size_t entry_bytes_ = 0;
};

} // namespace headgate::limiter
