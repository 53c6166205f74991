// SipHash-1-3. It derives the factors of key_hash from one secret, and is the checksum of a snapshot.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headgate::limiter {

struct hash_secret
{
    std::uint64_t k0 = 0, k1 = 0;
};

namespace detail {

struct sip_state
{
    std::uint64_t v0, v1, v2, v3;

    void round()
    {
        v0 += v1, v2 += v3;
        v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
        v0 = std::rotl(v0, 32);
        v2 += v1, v0 += v3;
        v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
        v2 = std::rotl(v2, 32);
    }
};

} // namespace detail

// Returns the hash of `text`. `domain` separates equal texts of different uses.
inline std::uint64_t siphash(const hash_secret& secret, std::uint64_t domain, std::string_view text)
{
    const std::uint64_t k0 = secret.k0 ^ domain, k1 = secret.k1;
    detail::sip_state s{k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                        k1 ^ 0x7465646279746573u};
    const auto absorb = [&s](std::uint64_t word) {
        s.v3 ^= word;
        s.round();
        s.v0 ^= word;
    };
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, at += 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        absorb(word);
    }
    std::uint64_t tail = static_cast<std::uint64_t>(text.size()) << 56;
    if (left > 0)
        std::memcpy(&tail, at, left); // little-endian: the length stays in the top byte
    absorb(tail);
    s.v2 ^= 0xff;
    s.round(), s.round(), s.round();
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

} // namespace headgate::limiter
