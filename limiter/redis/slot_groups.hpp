// Groups the keys of a chain by their slots in a cluster: the keys of one slot go into one call.
// No I/O.
#pragma once

#include "limiter/redis/client/slots.hpp"
#include "limiter/store.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

namespace headgate::limiter::redis {

struct slot_groups
{
    struct group
    {
        std::uint16_t slot = 0;
        std::size_t first = 0, count = 0; // in `order`
    };
    std::array<group, max_parts> all;
    std::size_t count = 0;
    std::array<std::uint8_t, max_parts> order; // indexes of the chain's parts, group by group

    // Finds the groups. `key(i)` returns the name in Redis of the chain's i-th key.
    template <class Key>
    void find(std::size_t keys, Key key)
    {
        std::array<std::uint16_t, max_parts> slots;
        for (std::size_t i = 0; i < keys; ++i)
            slots[i] = slot_of(key(i));
        std::iota(order.begin(), order.end(), std::uint8_t{0});
        // The keys of one slot stay in the chain's order.
        std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keys),
                  [&](auto a, auto b) { return slots[a] != slots[b] ? slots[a] < slots[b] : a < b; });
        count = 0;
        for (std::size_t i = 0; i < keys; ++i) {
            const auto slot = slots[order[i]];
            if (count == 0 || all[count - 1].slot != slot)
                all[count++] = {slot, i, 0};
            ++all[count - 1].count;
        }
    }
    std::span<const std::uint8_t> places(const group& of) const { return std::span(order).subspan(of.first, of.count); }
};

} // namespace headgate::limiter::redis
