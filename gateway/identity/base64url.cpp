#include "gateway/identity/base64url.hpp"

#include <array>
#include <cstdint>

namespace headgate::identity {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t not_a_digit = 0xff;

constexpr auto digits = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(not_a_digit);
    for (std::size_t i = 0; i < alphabet.size(); ++i)
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
    return values;
}();

} // namespace

std::optional<std::string> decode_base64url(std::string_view text)
{
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3 + 2);
    std::uint32_t held = 0; // bits that are read and not yet written, at most 13
    unsigned bits = 0;
    for (const char c : text) {
        const auto digit = digits[static_cast<unsigned char>(c)];
        if (digit == not_a_digit)
            return std::nullopt;
        held = held << 6 | digit;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        bytes.push_back(static_cast<char>(held >> bits));
        held &= (1U << bits) - 1;
    }
    // Six remaining bits are a single extra digit, which cannot encode a byte.
    if (bits == 6 || held != 0)
        return std::nullopt;
    return bytes;
}

} // namespace headgate::identity
