// The types that all stores share: the question (parts), the answer (verdict), and what operators see of one key.
#pragma once

#include "limiter/core/decision.hpp"
#include "limiter/rule_group.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter {

inline constexpr std::size_t max_parts = 8; // keys per chain
inline constexpr std::size_t max_decisions = max_parts * max_rules_per_group;

// One key of a chain, and the group of rules that share it. A chain has one part per group.
struct part
{
    const rule_group* group = nullptr; // owned by the caller's configuration
    std::string_view key;
    std::span<const std::uint64_t> costs; // one per rule of `group`; empty: 1 each
};

struct verdict
{
    bool admitted = true;
    bool blocked = false;                            // refused because an operator blocked a key
    std::size_t blocked_part = 0;                    // then: the first such key
    bool shared_counters = false;                    // the store was full: overflow counters decided for a new key
    bool shadow_refused = false;                     // at least one shadow rule would have refused
    microseconds retry_after{-1};                    // refused: after this wait every rule admits; never: no wait helps
    microseconds delay{0};                           // admitted: delay the request this long
    time_point charged_at{};                         // the time to pass when the charge is given back or corrected
    std::uint64_t holder = 0;                        // in Redis: whose requests in flight this is one of
    bool has_several_clocks = false;                 // parts were charged on several servers, each by its own clock
    std::array<time_point, max_parts> charged_there; // per part; only with has_several_clocks
    time_point charged(std::size_t part) const { return has_several_clocks ? charged_there[part] : charged_at; }

    // Decisions are in the caller's array, part by part, in the order of the group that decided. During a reload that
    // may be a newer group than the caller's configuration has: `kept` owns it.
    std::array<const rule_group*, max_parts> groups; // one per part
    std::vector<std::shared_ptr<const rule_group>> kept;
};

// One key as an operator sees it.
struct key_report
{
    std::string group;
    std::string key;
    std::shared_ptr<const rule_group> rules;
    std::vector<decision> decisions; // as a request of cost 0 would see them
    std::optional<microseconds> blocked_for;
};

struct store_stats
{
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t evicted = 0;
    std::uint64_t shared_takes = 0;   // requests decided by overflow counters; above 0: raise max_keys
    std::uint64_t merged_records = 0; // sliding logs that could not grow
};

} // namespace headgate::limiter
