#include "limiter/rule_group.hpp"

#include "limiter/core/sliding_log.hpp"

#include <algorithm>
#include <utility>

namespace headgate::limiter {

rule_group::rule_group(group_lineage& lineage, std::uint32_t id, std::vector<rule> rules) : lineage_(lineage), id_(id)
{
    members_.reserve(rules.size());
    for (auto& r : rules) {
        meter m(std::move(r));
        const bool is_log = m.limits.kind == algorithm::sliding_log;
        const auto words = m.words();
        logs_ = logs_ || is_log;
        fixed_words_ += words;
        members_.push_back({std::move(m), words, is_log});
    }
}

std::size_t rule_group::log_words(const member& m, std::uint8_t level)
{
    const auto records = std::min<std::uint64_t>(m.limits.limits.count, sliding_log::first_records << level);
    return sliding_log::header_words + 2 * records;
}

std::size_t rule_group::words_with_logs(std::uint8_t level) const
{
    std::size_t total = 0;
    for (const auto& m : members_)
        total += words_of(m, level);
    return total;
}

std::size_t rule_group::max_words() const
{
    std::size_t total = 0;
    for (const auto& m : members_)
        total += m.limits.max_words();
    return total;
}

bool same_rules(const rule_group& group, const std::vector<rule>& rules)
{
    const auto same = [](const rule_group::member& m, const rule& b) {
        const rule& a = m.limits.limits;
        return a.name == b.name && a.kind == b.kind && a.count == b.count && a.period == b.period &&
               a.capacity == b.capacity && a.initial == b.initial && a.delay_after == b.delay_after &&
               a.align == b.align && a.calendar == b.calendar && a.zone == b.zone && a.shadow == b.shadow &&
               a.count_refused == b.count_refused;
    };
    return std::equal(group.members().begin(), group.members().end(), rules.begin(), rules.end(), same);
}

} // namespace headgate::limiter
