#include "limiter/rule_group.hpp"

#include "limiter/core/sliding_log.hpp"

#include <algorithm>
#include <utility>

namespace headgate::limiter {

rule_group::rule_group(group_lineage& lineage, std::uint32_t id, std::vector<rule> rules)
    : lineage_(lineage), id_(id), shared_number_(lineage.number)
{
    members_.reserve(rules.size());
    for (auto& r : rules) {
        meter m(std::move(r));
        const bool is_log = m.limits.kind == algorithm::sliding_log;
        const auto words = m.words();
        logs_ = logs_ || is_log;
        counts_refused_ = counts_refused_ || m.limits.count_refused;
        fixed_words_ += words;
        members_.push_back({std::move(m), words, is_log});
    }
}

void rule_group::add_variant(std::string name, std::uint32_t id, std::uint32_t shared_number, std::vector<rule> rules)
{
    auto& variant = *variants_.emplace_back(std::make_unique<rule_group>(lineage_, id, std::move(rules)));
    variant.base_ = this;
    variant.shared_number_ = shared_number;
    variant.variant_name_ = std::move(name);
}

const rule_group& rule_group::variant(std::string_view name) const
{
    if (name.empty())
        return *this;
    const auto found = std::lower_bound(variants_.begin(), variants_.end(), name,
                                        [](const auto& known, std::string_view n) { return known->variant_name_ < n; });
    return found != variants_.end() && (*found)->variant_name_ == name ? **found : *this;
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
               a.unlimited == b.unlimited && a.count_refused == b.count_refused;
    };
    return std::equal(group.members().begin(), group.members().end(), rules.begin(), rules.end(), same);
}

bool same_variants(const rule_group& group, const rule_variants& variants)
{
    return group.variants().size() == variants.size() &&
           std::all_of(group.variants().begin(), group.variants().end(), [&](const auto& known) {
               const auto wanted = variants.find(known->variant_name());
               return wanted != variants.end() && same_rules(*known, wanted->second);
           });
}

std::shared_ptr<const rule_group> define_detached(std::string name, std::vector<rule> rules,
                                                  const rule_variants& variants)
{
    struct owner
    {
        group_lineage lineage;
        std::unique_ptr<rule_group> group;
    };
    const auto made = std::make_shared<owner>();
    made->lineage.name = std::move(name);
    made->group = std::make_unique<rule_group>(made->lineage, 0, std::move(rules));
    std::uint32_t number = 0;
    for (const auto& [variant, of_variant] : variants)
        made->group->add_variant(variant, 0, ++number, of_variant);
    return {made, made->group.get()};
}

} // namespace headgate::limiter
