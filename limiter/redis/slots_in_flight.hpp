// The requests in flight that this worker counts in Redis, per key. No I/O.
//
// Redis keeps a count per key and holder. A holder is a number under which this worker takes slots; there is one for
// all keys as long as no call fails. After a call whose outcome is not known, or whose effect may have been lost with a
// server, its holder is closed: later requests take their slots under the next one. Nothing is added to a closed
// holder's counts, so they are corrected by "keep at most so many", which may be done late, twice or in any order
// without harm; it is repeated until it has succeeded. So a slot that was lost is neither kept alive by later requests
// nor given back twice.
#pragma once

#include "limiter/redis/packed_group.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter::redis {

class slots_in_flight
{
public:
    using shared_rules = std::shared_ptr<const detached_rules>;
    using counts = std::vector<std::uint64_t>; // one per rule
    using steady_time = std::chrono::steady_clock::time_point;

    // More keys than that are not remembered: their slots end as if nothing failed.
    static constexpr std::size_t most_keys = 100'000;
    // How long a key without requests is remembered: a server that takes over may not know yet that they have ended.
    static constexpr std::chrono::seconds kept_unused{5};
    // Redis's time is not waited for longer than that: its clock may have been set back.
    static constexpr std::chrono::seconds longest_wait{30};

    explicit slots_in_flight(std::uint64_t first_holder) : holder_(first_holder) {}

    // Returns the holder of the next slots.
    std::uint64_t holder() const { return holder_; }

    // A call that takes or ends slots of the key under holder() begins; it ends with done(). `ends`: the rules may be
    // older than those that the key is counted under, which stay.
    void begin(std::string_view key, const shared_rules& rules, steady_time now, bool ends = false);
    void done(std::string_view key, std::uint64_t holder);

    // A request has taken slots. The numbers are by rules of `as`, which may be others than the key's.
    void add(std::string_view key, std::uint64_t holder, const packed_group& as, std::span<const std::uint64_t> taken);
    // A request has ended. Returns the holder of its slots; nothing when they are not known. `holder` 0: any.
    std::optional<std::uint64_t> remove(std::string_view key, std::uint64_t holder, const packed_group& as,
                                        std::span<const std::uint64_t> ended, steady_time now);

    // Closes the holder, and has its count on the key corrected as soon as Redis's time is later than `after`: until
    // then a call of the holder may still be done.
    void doubt(std::string_view key, std::uint64_t holder, time_point after, steady_time now);
    // Closes the holder, and has all its counts corrected: a server may have lost what it had confirmed.
    void doubt_all();

    // A count to correct or to renew.
    struct job
    {
        std::string key;
        std::uint64_t holder = 0;
        bool is_open = false; // only to be renewed
        shared_rules rules;
        counts most;
        time_point after{};
    };
    // Returns counts to be corrected now, `most` of them at most. finished() must follow for each.
    std::vector<job> take_doubtful(std::size_t most, steady_time now);
    void finished(const job& what, bool has_succeeded, steady_time now);
    // Returns the holder() counts to be renewed; those of closed holders become doubtful, which renews them too.
    std::vector<job> take_open();

    void forget_unused(steady_time now);

    std::size_t keys() const { return keys_.size(); }
    std::size_t doubtful() const { return doubtful_.size(); }
    std::uint64_t live(std::string_view key) const; // the sum over all holders and rules

private:
    struct holding
    {
        std::uint64_t holder = 0;
        counts live;
        std::size_t calls = 0;    // that have begun and are not done
        bool is_doubtful = false; // is in doubtful_, or a correction is under way
        bool has_changed = false; // since that correction
        time_point after{};
        steady_time used{}, not_before{}, doubted{};
    };
    struct entry
    {
        shared_rules rules;
        std::vector<holding> held;
    };
    struct name
    {
        std::string key;
        std::uint64_t holder;
    };
    struct text_hash
    {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
    };

    holding* find(std::string_view key, std::uint64_t holder);
    static void use_rules(entry& in, const shared_rules& rules);
    void close(std::uint64_t holder) { holder_ += holder == holder_ ? 1 : 0; }
    void mark(const std::string& key, holding& h);

    std::uint64_t holder_;
    boost::unordered_flat_map<std::string, entry, text_hash, std::equal_to<>> keys_;
    std::deque<name> doubtful_;
};

} // namespace headgate::limiter::redis
