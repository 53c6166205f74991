// The rules of one chain that share one key. They share one entry of the store too, so that judging them costs one
// lookup.
#pragma once

#include "limiter/core/meter.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headgate::limiter {

inline constexpr std::size_t max_rules_a_group = 16;

class rule_group;

// A group through all its reloads. `current` is what every request is judged by, whichever configuration it came in
// under: two versions at once would have to convert a key's counters to and fro.
struct group_lineage
{
    std::string name;
    std::uint32_t number = 0;
    std::atomic<const rule_group*> current{nullptr};
    std::mutex owner_lock;
    std::shared_ptr<const rule_group> owner; // of `current`
};

class rule_group
{
public:
    struct member
    {
        meter limits;
        std::size_t words; // fixed rules; a sliding log's depend on the entry's level
        bool is_log;
    };

    rule_group(group_lineage& lineage, std::uint32_t id, std::vector<rule> rules);

    const std::string& name() const { return lineage_.name; }
    group_lineage& lineage() const { return lineage_; }
    std::uint32_t id() const { return id_; }
    const std::vector<member>& members() const { return members_; }
    std::size_t size() const { return members_.size(); }

    // An entry's words at a level of growth: every sliding log of it holds min(limit, 4 << level) records.
    std::size_t words(std::uint8_t level) const { return logs_ ? words_with_logs(level) : fixed_words_; }
    std::size_t words_of(const member& m, std::uint8_t level) const { return m.is_log ? log_words(m, level) : m.words; }
    std::size_t max_words() const;
    bool has_logs() const { return logs_; }

private:
    static std::size_t log_words(const member& m, std::uint8_t level);
    std::size_t words_with_logs(std::uint8_t level) const;

    group_lineage& lineage_;
    std::uint32_t id_;
    std::vector<member> members_;
    std::size_t fixed_words_ = 0;
    bool logs_ = false;
};

// True when no counter needs converting from one to the other.
bool same_rules(const rule_group& group, const std::vector<rule>& rules);

} // namespace headgate::limiter
