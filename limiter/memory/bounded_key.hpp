// A key of any length, bounded to fit an entry: a long key is replaced by its SHA-256. A key that looks like such a
// replacement is replaced too, so that no client can name the entry of another key by its digest.
#pragma once

#include "limiter/memory/key_table.hpp"

#include <openssl/sha.h>

#include <array>
#include <cstring>
#include <string_view>

namespace headgate::limiter {

class bounded_key
{
public:
    bounded_key() = default;
    explicit bounded_key(std::string_view key) { set(key); }
    bounded_key(const bounded_key&) = delete;
    bounded_key& operator=(const bounded_key&) = delete;

    // Returns whether the key is kept as it is.
    static bool fits(std::string_view key) { return key.size() <= max_key_bytes && !key.starts_with(mark); }

    void set(std::string_view key)
    {
        view_ = key;
        if (fits(key))
            return;
        unsigned char digest[SHA256_DIGEST_LENGTH];
        SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest);
        std::memcpy(text_.data(), mark.data(), mark.size());
        for (std::size_t i = 0; i < sizeof digest; ++i) {
            text_[mark.size() + 2 * i] = "0123456789abcdef"[digest[i] >> 4];
            text_[mark.size() + 2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
        }
        view_ = {text_.data(), text_.size()};
    }
    std::string_view view() const { return view_; }

private:
    static constexpr std::string_view mark = "sha256:";
    std::string_view view_;
    std::array<char, mark.size() + 2 * SHA256_DIGEST_LENGTH> text_;
};

} // namespace headgate::limiter
