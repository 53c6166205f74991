// A group of rules prepared for Redis: its fingerprint, and the layout of its values and arguments (documented in
// lua/take.lua). Each worker has its own objects, because they cache windows of calendars.
#pragma once

#include "limiter/redis/numbers.hpp"
#include "limiter/rule_group.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headgate::limiter::redis {

// The number of a kind of rule in the scripts.
enum class script_kind : std::uint8_t
{
    bucket = 1,
    clock_window,
    first_call_window,
    calendar_window,
    sliding_window,
    sliding_log,
    in_flight,
};

inline constexpr std::size_t header_numbers = 3;   // fingerprint, last moment, blocked until
inline constexpr std::size_t most_usual_rules = 2; // of a chain that take_each.lua can decide

// Returns why Redis cannot keep the rule exactly, as text for the configuration's problem; nothing when it can.
std::optional<std::string> why_not_in_redis(const rule& r);

class packed_group
{
public:
    // Two windows of a calendar, one after the other.
    struct window_pair
    {
        time_point start{}, end{}, next_end{};
    };

    explicit packed_group(const rule_group& rules);

    const rule_group& rules() const { return *rules_; }
    const meter& limits(std::size_t i) const { return rules_->members()[i].limits; }
    std::size_t size() const { return kinds_.size(); }
    script_kind kind(std::size_t i) const { return kinds_[i]; }
    std::uint64_t fingerprint() const { return fingerprint_; }
    const std::string& description() const { return description_; } // to be stored under rules_key(fingerprint())
    std::size_t numbers() const { return numbers_; }                // of a value, before its tails
    bool has_tails() const { return has_tails_; }
    bool has_slots() const { return has_slots_; } // a rule counts requests in flight
    bool is_usual() const { return is_usual_; }   // defined in lua/take_each.lua
    bool refusals_may_write() const { return refusals_may_write_; }

    // Returns the window of the i-th rule that `guess` is in, and the next one.
    const window_pair& windows_around(std::size_t i, time_point guess) const;

private:
    const rule_group* rules_;
    std::string description_;
    std::uint64_t fingerprint_;
    std::vector<script_kind> kinds_;
    std::size_t numbers_ = header_numbers;
    bool has_tails_ = false;
    bool has_slots_ = false;
    bool is_usual_ = false;
    bool refusals_may_write_ = false;
    mutable std::vector<window_pair> windows_; // the last result, per rule
};

// Returns how many numbers of a value, before the tails, belong to a rule.
std::size_t numbers_of(script_kind kind);

// Returns whether a key that was never used begins with a bucket that is not full.
inline bool starts_with_less(const rule& r) { return r.is_bucket() && r.initial < r.capacity; }

// Rules that belong to no configured group, such as those that another gateway wrote a value under.
class detached_rules
{
public:
    explicit detached_rules(std::vector<rule> rules) : group_(lineage_, 0, std::move(rules)), packed_(group_) {}
    detached_rules(const detached_rules&) = delete;
    detached_rules& operator=(const detached_rules&) = delete;

    const packed_group& packed() const { return packed_; }

private:
    group_lineage lineage_;
    rule_group group_;
    packed_group packed_;
};

} // namespace headgate::limiter::redis
