// Counts latencies in buckets whose width is 1/128 of their value: every percentile is exact to 0.8 %, in constant
// memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace load {

class histogram
{
public:
    void add(std::uint64_t nanoseconds)
    {
        ++counts_[std::min(bucket_of(nanoseconds), buckets - 1)];
        ++total_;
        largest_ = std::max(largest_, nanoseconds);
    }

    // Returns the value that `share` of all values do not exceed: the upper edge of its bucket, at most the largest
    // value.
    std::uint64_t percentile(double share) const
    {
        const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share * static_cast<double>(total_)));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < buckets; ++i) {
            seen += counts_[i];
            if (seen >= rank)
                return std::min(edge_of(i), largest_);
        }
        return largest_;
    }

    std::uint64_t total() const { return total_; }
    std::uint64_t largest() const { return largest_; }

private:
    static constexpr std::size_t parts = 128;          // of each power of two
    static constexpr std::size_t buckets = parts * 34; // to 2^40 ns, eighteen minutes

    // Values below `parts` have a bucket each; above, the top eight bits choose it.
    static std::size_t bucket_of(std::uint64_t value)
    {
        if (value < parts)
            return static_cast<std::size_t>(value);
        const auto shift = static_cast<std::size_t>(std::bit_width(value)) - 8;
        return (shift + 1) * parts + static_cast<std::size_t>(value >> shift) - parts;
    }
    static std::uint64_t edge_of(std::size_t bucket)
    {
        if (bucket < parts)
            return bucket;
        const auto shift = bucket / parts - 1;
        return ((std::uint64_t{parts} + bucket % parts + 1) << shift) - 1;
    }

    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t total_ = 0;
    std::uint64_t largest_ = 0;
};

} // namespace load
