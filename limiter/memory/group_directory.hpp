// Groups by the id that entries carry. Ids are few and reused; a lookup is one load.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace headgate::limiter {

class rule_group;

class group_directory
{
public:
    static constexpr std::size_t max_groups = 65536; // only the pages of used ids are touched

    const rule_group& by_id(std::uint32_t id) const { return *slots_[id].load(std::memory_order_acquire); }
    void set(std::uint32_t id, const rule_group* group) { slots_[id].store(group, std::memory_order_release); }

private:
    std::unique_ptr<std::atomic<const rule_group*>[]> slots_ =
        std::make_unique<std::atomic<const rule_group*>[]>(max_groups);
};

} // namespace headgate::limiter
