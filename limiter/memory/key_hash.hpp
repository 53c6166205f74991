// The hash of a key, with a secret of the process, so that no client can choose keys that collide.
//
// It is multilinear over the words of the text with secret factors of 128 bits; the upper 64 bits of the sum count. It
// is strongly universal: two different keys, chosen without knowing the factors, collide with probability 2^-64. The
// words are multiplied independently, so a short key costs a third of SipHash. A last folded multiplication hides the
// difference of two keys in the difference of their hashes.
#pragma once

#include "limiter/siphash.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headgate::limiter {

inline constexpr std::size_t max_key_bytes = 200; // bounded_key replaces longer keys

class key_hash
{
public:
    explicit key_hash(const hash_secret& secret)
    {
        for (std::size_t i = 0; i < factors_.size(); ++i)
            factors_[i] = wide{siphash(secret, 2 * i, "factor")} << 64 | siphash(secret, 2 * i + 1, "factor");
        mask_ = siphash(secret, 0, "fold");
        fold_ = siphash(secret, 1, "fold") | 1;
    }

    // Returns the hash of `text`. `domain` separates equal texts of different groups.
    // REQUIRES: text.size() <= max_key_bytes.
    std::uint64_t operator()(std::uint32_t domain, std::string_view text) const
    {
        const auto n = text.size();
        const char* const from = text.data();
        wide sum = factors_[0] + factors_[1] * (std::uint64_t{domain} << 32 | n);
        if (n >= 8) {
            std::size_t i = 0;
            for (; i + 8 < n; i += 8)
                sum += factors_[2 + i / 8] * read<std::uint64_t>(from + i);
            sum += factors_[2 + i / 8] * read<std::uint64_t>(from + n - 8); // overlaps the word before
        } else if (n >= 4) {
            sum += factors_[2] * (std::uint64_t{read<std::uint32_t>(from)} << 32 | read<std::uint32_t>(from + n - 4));
        } else if (n > 0) {
            const auto byte = [from](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(from[at])}; };
            sum += factors_[2] * (byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1));
        }
        const wide folded = wide{static_cast<std::uint64_t>(sum >> 64) ^ mask_} * fold_;
        return static_cast<std::uint64_t>(folded) ^ static_cast<std::uint64_t>(folded >> 64);
    }

private:
    __extension__ typedef unsigned __int128 wide;

    template <class Word>
    static Word read(const char* at)
    {
        Word w;
        std::memcpy(&w, at, sizeof w);
        return w;
    }

    std::array<wide, 2 + max_key_bytes / 8> factors_;
    std::uint64_t mask_, fold_;
};

} // namespace headgate::limiter
