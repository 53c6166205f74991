// The hash of the router's edges. It needs no secret: only the configuration fills the table, so clients cannot cause
// collisions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace headgate::http::detail {

inline std::uint32_t edge_hash(std::uint32_t parent, std::string_view text) noexcept
{
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
    std::uint64_t hash = (parent + text.size() * 0x100000001U) * odd;
    const char* at = text.data();
    std::size_t left = text.size();
    std::uint64_t word = 0;
    for (; left >= 8; at += 8, left -= 8) {
        std::memcpy(&word, at, 8);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    word = 0;
    for (std::size_t i = 0; i < left; ++i)
        word |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
    hash = (hash ^ word) * odd;
    return static_cast<std::uint32_t>(hash >> 32);
}

} // namespace headgate::http::detail
