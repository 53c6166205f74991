// The embedded store: shared by all workers of a process, sharded by key, bounded without amnesty.
//
// A chain over several keys is decided at once: the shards of all its keys are locked, in order of their numbers, while
// it is judged and charged. When the store is full and no key has recovered, new keys share overflow counters; a key
// that gets an entry later starts with what those counters have used, so that nobody ever starts afresh.
#pragma once

#include "limiter/memory/key_hash.hpp"
#include "limiter/memory/key_table.hpp"
#include "limiter/memory/shard_lock.hpp"
#include "limiter/store.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

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

    // Declares or changes the rules that share a key. A change converts every counter of the group before it returns.
    // A part may name one of the variants in place of the group that is returned.
    std::shared_ptr<const rule_group> define(const std::string& name, std::vector<rule> rules, time_point now,
                                             rule_variants variants = {});

    // All rules admit, or nothing is charged. `decisions` takes one a rule, part by part.
    verdict take(std::span<const part> parts, time_point now, std::span<decision> decisions);
    // Judges and changes nothing.
    verdict look(std::span<const part> parts, time_point now, std::span<decision> decisions);
    // Undoes a take that admitted, as far as it still counts.
    void give_back(std::span<const part> parts, time_point charged_at, time_point now);
    // Makes what `as_charged.costs` took at `charged_at` as if it had been `actual`, more or less: one cost a rule.
    void correct(const part& as_charged, std::span<const std::uint64_t> actual, time_point charged_at, time_point now)
    {
        settle_part(as_charged, actual, charged_at, now);
    }

    // Takes an estimate that `settle` corrects later; one that is never settled is given back when `lifetime` is over.
    verdict reserve(std::span<const part> parts, time_point now, microseconds lifetime, std::span<decision> decisions,
                    reservation& id);
    // `actual` costs, one a rule of each part in order; empty gives all back. False when the reservation is gone.
    bool settle(reservation id, std::span<const std::uint64_t> actual, time_point now);
    // Gives back what nobody settled in time. Called by reserve too; calling it from a timer bounds the delay.
    void expire_reservations(time_point now);

    // Operators' verbs. A group is named as in define.
    std::optional<key_report> inspect(std::string_view group, std::string_view key, time_point now);
    std::vector<key_report> list(std::string_view group, std::string_view key_prefix, std::size_t most, time_point now);
    bool reset(std::string_view group, std::string_view key, time_point now);
    // Adds up to n to every rate of the key; returns the most that any rule had room for.
    std::uint64_t grant(std::string_view group, std::string_view key, std::uint64_t n, time_point now);
    bool block(std::string_view group, std::string_view key, time_point until, time_point now);
    bool unblock(std::string_view group, std::string_view key, time_point now);

    store_stats stats() const;
    std::size_t max_keys() const { return max_keys_; }
    // The most the store can ever take, with the groups it has now.
    std::size_t bound_bytes() const;

    // No define() changes a group while this is held: ids of groups stay what they are.
    [[nodiscard]] std::unique_lock<std::mutex> hold_rules() const { return std::unique_lock(reload_); }
    // Every entry of one shard, locked while it is read: what `see` does must be quick.
    using entry_visitor = std::function<void(const key_table::entry&)>;
    std::size_t shard_count() const { return std::size_t{1} << shard_bits_; }
    void visit(std::size_t shard_number, const entry_visitor& see) const;
    std::vector<std::shared_ptr<const rule_group>> groups() const;
    // For snapshots: puts one entry in place, converted from the rules it was written under. False when there is no
    // room.
    bool restore(const rule_group& group, const rule_group& written_under, std::uint8_t level, state words,
                 std::string_view key, std::optional<time_point> blocked_until, time_point now);

private:
    struct overflow_counters;
    struct shard;
    struct located;
    class locked_parts;
    struct open_reservation;
    enum class purpose
    {
        take,
        look
    };

    // The usual request, without detours: one key, known, not blocked, and every rule admits or nothing counts what is
    // refused. False: nothing was changed, `decide` must.
    bool take_known(const part& p, time_point now, std::span<decision> decisions, verdict& out);
    static bool refuse_known(const part& p, std::uint64_t* words, time_point now, std::span<decision> decisions,
                             verdict& out);

    // The steps of a decision, in order.
    void decide(std::span<const part> parts, time_point now, std::span<decision> decisions, purpose why, verdict& out);
    static const rule_group& current_group(const part& p, verdict& out);
    located locate(shard& in, std::uint64_t hash, std::string_view key, const rule_group& group, time_point now);
    static void judge_part(const part& p, const located& at, time_point now, std::span<decision> said, verdict& out);
    static void charge_part(const part& p, located& at, std::string_view key, time_point now,
                            std::span<const decision> said);
    static void charge_refused_part(const part& p, located& at, std::string_view key, time_point now,
                                    std::span<decision> said);
    static microseconds longest_wait(std::span<const located> at, std::span<const decision> decisions, time_point now);
    static void say_what_is_left(std::span<const located> at, std::span<decision> decisions, time_point now);
    static void leave(const located& at, std::string_view key, time_point now, purpose why);

    static overflow_counters& overflow_of(shard& in, const rule_group& group, time_point now);
    static void inherit(shard& in, overflow_counters& shared, const located& to, time_point now);
    static void grow_logs(located& at, std::string_view key, time_point now);
    static bool grow_entry(located& at, std::string_view key, std::uint8_t level);
    // Brings an entry to the current version of its group; without memory for that, its use moves to the shared
    // counters.
    static void share(shard& in, const rule_group& group, std::uint8_t level, state carried, time_point now);
    static void adopt(shard& in, key_table::slot s, const rule_group& group, time_point now);
    static void adopt(const group_directory& directory, overflow_counters& shared, const rule_group& group,
                      time_point now);
    // Corrects a charge of p.costs to `actual`; no actual costs: gives everything back.
    void settle_part(const part& p, std::span<const std::uint64_t> actual, time_point charged_at, time_point now);

    static void end_shared(shard& in, const rule_group& group, std::size_t rule, std::uint64_t cost);

    group_lineage* lineage_of(std::string_view name) const;
    std::uint64_t hash_of(const group_lineage& lineage, std::string_view key) const;
    shard& shard_of(std::uint64_t hash) const;
    // Runs `act` on the key's entry under its lock; false when the key is not there.
    template <class Act>
    bool with_entry(std::string_view group, std::string_view key, time_point now, Act act);
    void resize_shards();
    std::uint32_t new_id();
    void publish(const rule_group& group);
    void convert_all(const rule_group& from, const rule_group& to, time_point now);
    void convert_shared(shard& in, const rule_group& from, const rule_group& to, time_point now);
    std::span<shard> all_shards() const;

    std::size_t max_keys_;
    key_hash hash_;
    std::size_t shard_bits_ = 0;
    chunk_source memory_;
    std::unique_ptr<shard[]> shards_;

    mutable std::mutex reload_; // one define() at a time, and none while a snapshot is written; taken before registry_
    mutable std::mutex registry_; // groups and their ids; never taken on the way of a request
    std::map<std::string, std::unique_ptr<group_lineage>, std::less<>> lineages_;
    group_directory directory_;
    std::vector<std::uint32_t> free_ids_;
    std::uint32_t next_id_ = 0;
    std::uint32_t next_number_ = 0; // of lineages and of variants' overflow counters
    std::size_t entry_bytes_ = 0;

    mutable std::mutex reservations_lock_;
    boost::unordered_flat_map<reservation, open_reservation> reservations_;
    std::multimap<time_point, reservation> reservations_by_expiry_;
    reservation next_reservation_ = 1;
    std::uint64_t expired_reservations_ = 0;
};

} // namespace headgate::limiter
