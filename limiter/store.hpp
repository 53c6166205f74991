// What every store answers to: the question (parts), the answer (verdict), and what operators may ask of one key.
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

inline constexpr std::size_t max_parts = 8; // keys a chain may have
inline constexpr std::size_t max_decisions = max_parts * max_rules_a_group;

// One key of a chain, and the rules that look at it. Every part of a chain has a group of its own.
struct part
{
    const rule_group* group = nullptr; // held by the caller's configuration
    std::string_view key;
    std::span<const std::uint64_t> costs; // one a rule of `group`; none: each costs 1
};

struct verdict
{
    bool admitted = true;
    bool blocked = false;            // by an operator, not by a rule
    bool shared_counters = false;    // the store was full: a new key was judged by the overflow counters
    bool shadow_refused = false;     // some shadow rule would have refused
    microseconds retry_after{-1};    // refused: waiting this long satisfies every rule; never: no wait does
    microseconds delay{0};           // admitted: hold the request this long
    time_point charged_at{};         // what to say when it is given back
    bool has_several_clocks = false; // parts were charged in several places, each by its own clock
    std::array<time_point, max_parts> charged_there; // by part; only then
    time_point charged(std::size_t part) const { return has_several_clocks ? charged_there[part] : charged_at; }

    // Decisions stand in the caller's array, part by part, in the order of the group that judged. During a reload that
    // is the new group, which the caller's configuration may not hold yet: `kept` does.
    std::array<const rule_group*, max_parts> groups; // of as many parts as were asked about
    std::vector<std::shared_ptr<const rule_group>> kept;
};

using reservation = std::uint64_t; // 0: none

// One key as an operator sees it.
struct key_report
{
    std::string group;
    std::string key;
    std::shared_ptr<const rule_group> rules;
    std::vector<decision> decisions; // as a request that costs nothing would see them
    std::optional<microseconds> blocked_for;
};

struct store_stats
{
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t evicted = 0;
    std::uint64_t shared_takes = 0;   // judged by overflow counters: the alarm
    std::uint64_t merged_records = 0; // sliding logs that had no memory to grow
    std::uint64_t open_reservations = 0;
    std::uint64_t expired_reservations = 0;
};

} // namespace headgate::limiter
