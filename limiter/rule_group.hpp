// The rules of one chain that share one key. They share one entry of the store, so one lookup decides them all. A group
// may have variants: the same rules with other numbers, or without some of them, for keys on another plan. A key has
// one entry whichever variant decides; a key that changes to another variant keeps what it has used.
#pragma once

#include "limiter/core/meter.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::limiter {

inline constexpr std::size_t max_rules_per_group = 16;

class rule_group;

// All versions of a group over reloads. Every request is decided by `current`, whatever configuration the request
// started under: with two versions at once, counters would have to be converted back and forth.
struct group_lineage
{
    std::string name;
    std::uint32_t number = 0;
    std::map<std::string, std::uint32_t> variant_numbers; // each variant has its own overflow counters
    std::atomic<const rule_group*> current{nullptr};
    std::mutex owner_lock;
    std::shared_ptr<const rule_group> owner; // owns `current` and its variants
};

class rule_group
{
public:
    struct member
    {
        meter limits;
        std::size_t words; // a sliding log's words depend on the entry's level
        bool is_log;
    };

    rule_group(group_lineage& lineage, std::uint32_t id, std::vector<rule> rules);
    // REQUIRES: the group is not shared yet; variants are added in the order of their names.
    void add_variant(std::string name, std::uint32_t id, std::uint32_t shared_number, std::vector<rule> rules);

    const std::string& name() const { return lineage_.name; }
    const std::string& variant_name() const { return variant_name_; } // empty for the group itself
    const rule_group* base() const { return base_; }                  // the group this is a variant of, or this group
    const std::vector<std::unique_ptr<rule_group>>& variants() const { return variants_; }
    // Returns the variant of that name, or the group itself when there is none.
    const rule_group& variant(std::string_view name) const;
    std::uint32_t shared_number() const { return shared_number_; } // of its overflow counters
    group_lineage& lineage() const { return lineage_; }
    std::uint32_t id() const { return id_; }
    const std::vector<member>& members() const { return members_; }
    std::size_t size() const { return members_.size(); }

    // Returns an entry's words at a growth level: every sliding log of it holds min(limit, 4 << level) records.
    std::size_t words(std::uint8_t level) const { return logs_ ? words_with_logs(level) : fixed_words_; }
    std::size_t words_of(const member& m, std::uint8_t level) const { return m.is_log ? log_words(m, level) : m.words; }
    std::size_t max_words() const;
    bool has_logs() const { return logs_; }
    bool counts_refused() const { return counts_refused_; } // at least one rule does

private:
    static std::size_t log_words(const member& m, std::uint8_t level);
    std::size_t words_with_logs(std::uint8_t level) const;

    group_lineage& lineage_;
    const rule_group* base_ = this;
    std::uint32_t id_;
    std::uint32_t shared_number_;
    std::vector<member> members_;
    std::size_t fixed_words_ = 0;
    bool logs_ = false;
    bool counts_refused_ = false;
    std::string variant_name_;
    std::vector<std::unique_ptr<rule_group>> variants_;
};

using rule_variants = std::map<std::string, std::vector<rule>>;

// Makes a group whose counters are in another process, so that no store numbers it. Its variants share its name.
std::shared_ptr<const rule_group> define_detached(std::string name, std::vector<rule> rules,
                                                  const rule_variants& variants = {});

// Returns whether no counter needs converting from one to the other.
bool same_rules(const rule_group& group, const std::vector<rule>& rules);
bool same_variants(const rule_group& group, const rule_variants& variants);

// Returns a pointer to `group` that shares the ownership of `owner`, which owns it.
inline std::shared_ptr<const rule_group> keep(const std::shared_ptr<const rule_group>& owner, const rule_group& group)
{
    return {owner, &group};
}

} // namespace headgate::limiter
