// Which hashes were seen within a period, in bounded memory. Pure: hashes and times come in.
//
// It never says that a hash was seen that was not marked within the period. It may forget: a hash has 16 slots to
// choose from, and when others that were seen within the period have all of them, the one among them that was seen the
// longest ago is forgotten. So hashes that are seen often stay, and what comes once makes room.
#pragma once

#include "limiter/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headgate::limiter {

class seen_set
{
public:
    // Has room for this many hashes, and for some more: its places are not used quite evenly.
    explicit seen_set(std::size_t most);

    // Returns whether the hash was marked within `period` before `now`; if so, it is marked again.
    // A time in the future, which a clock that was set back leaves, counts as now.
    bool refresh(std::uint64_t hash, time_point now, microseconds period);
    // Marks the hash. Returns whether it was marked within the period already.
    bool mark(std::uint64_t hash, time_point now, microseconds period);

    // Returns how many hashes were forgotten within their period.
    std::uint64_t forgotten() const { return forgotten_; }

private:
    static constexpr std::size_t bucket_size = 8;

    struct slot
    {
        std::uint64_t hash = 0;
        time_point at = time_point::min(); // min: empty
    };

    static bool holds(const slot& s, time_point now, microseconds period);
    std::span<slot> bucket(std::uint64_t half);
    slot* find(std::uint64_t hash);
    slot& make_room(std::uint64_t hash, time_point now, microseconds period);

    std::vector<slot> slots_;
    std::uint64_t forgotten_ = 0;
};

} // namespace headgate::limiter
