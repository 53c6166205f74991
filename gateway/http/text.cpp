#include "gateway/http/text.hpp"

#include <array>
#include <cstring>

namespace headgate::http {

namespace {

consteval std::array<std::uint64_t, 20> make_powers_of_ten()
{
    std::array<std::uint64_t, 20> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i)
        powers[i] = powers[i - 1] * 10;
    return powers;
}
constexpr auto powers_of_ten = make_powers_of_ten();

consteval std::array<char, 200> make_digit_pairs()
{
    std::array<char, 200> pairs{};
    for (std::size_t i = 0; i < 100; ++i) {
        pairs[2 * i] = static_cast<char>('0' + i / 10);
        pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return pairs;
}
constexpr auto digit_pairs = make_digit_pairs();

// REQUIRES: value > 0. 1233 / 4096 is just above log10(2): the number of bits gives the number of digits, or one too
// few.
unsigned count_digits(std::uint64_t value)
{
    const auto bits = 64 - static_cast<unsigned>(__builtin_clzll(value));
    const auto digits = bits * 1233 >> 12;
    return digits + (value >= powers_of_ten[digits] ? 1 : 0);
}

} // namespace

char* write_decimal(char* at, std::uint64_t value)
{
    const auto write_pair = [](char* to, std::uint32_t below_100) { std::memcpy(to, &digit_pairs[2 * below_100], 2); };
    auto rest = static_cast<std::uint32_t>(value);
    if (value < 1000) { // statuses, sizes and parts of an address
        if (rest >= 100) {
            *at++ = static_cast<char>('0' + rest / 100);
            rest %= 100;
        } else if (rest < 10) {
            *at = static_cast<char>('0' + rest);
            return at + 1;
        }
        write_pair(at, rest);
        return at + 2;
    }
    char* const end = at + count_digits(value);
    char* to = end;
    for (; value > UINT32_MAX; value /= 100)
        write_pair(to -= 2, static_cast<std::uint32_t>(value % 100));
    for (rest = static_cast<std::uint32_t>(value); rest >= 100; rest /= 100)
        write_pair(to -= 2, rest % 100);
    if (rest >= 10)
        write_pair(to - 2, rest);
    else
        to[-1] = static_cast<char>('0' + rest);
    return end;
}

namespace {

// Returns non-zero if one of the 8 bytes must be escaped in a quoted string. Each test sets the high bit of a byte that
// fails it, and may set that of a later byte too: the result is about all 8 bytes together.
inline std::uint64_t find_odd(std::uint64_t bytes)
{
    constexpr std::uint64_t each = 0x0101010101010101u;
    const auto is_zero = [](std::uint64_t x) { return (x - each) & ~x; };
    const auto del = is_zero(bytes ^ each * 0x7f);
    const auto control = (bytes - each * 0x20) & ~bytes;
    return (bytes | del | control | is_zero(bytes ^ each * '"') | is_zero(bytes ^ each * '\\')) & each * 0x80;
}

template <class Word>
std::uint64_t load(const char* at)
{
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

} // namespace

bool is_plain_text(std::string_view text)
{
    const char* at = text.data();
    auto size = text.size();
#if defined(__SSE2__)
    if (size >= 16) {
        // The comparison is signed: bytes above ASCII are negative.
        const auto plain = [](const char* from) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
            const auto is = [&](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
            const __m128i odd = _mm_or_si128(_mm_or_si128(is('"'), is('\\')), is(0x7f));
            return _mm_andnot_si128(odd, _mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x1f)));
        };
        __m128i all = plain(at + size - 16);
        for (; size > 16; at += 16, size -= 16)
            all = _mm_and_si128(all, plain(at));
        return _mm_movemask_epi8(all) == 0xffff;
    }
#endif
    std::uint64_t odd = 0;
    if (size >= 8) {
        for (; size > 8; at += 8, size -= 8)
            odd |= find_odd(load<std::uint64_t>(at));
        return (odd | find_odd(load<std::uint64_t>(at + size - 8))) == 0;
    }
    constexpr std::uint64_t blanks = 0x2020202020202020u;
    if (size >= 4)
        return find_odd(load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << 32) == 0;
    if (size == 0)
        return true;
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])}; };
    return find_odd((blanks & ~std::uint64_t{0xffffff}) | byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16) == 0;
}

} // namespace headgate::http
