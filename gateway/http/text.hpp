// The bytes of HTTP's grammar: tokens, digits, white space. Functions to compare and split text, without copies or
// locales.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headgate::http {

namespace detail {

enum : std::uint8_t
{
    token_byte = 1,      // RFC 9110 §5.6.2 tchar
    text_byte = 2,       // allowed in a field value: HTAB, SP, VCHAR, obs-text
    unreserved_byte = 4, // RFC 3986 §2.3
    path_byte = 8,       // RFC 3986 pchar and "/", without "%"
    digit_byte = 16,
    target_byte = 32, // VCHAR without "#" and "%": accepted in a query
    underscore_byte = 64,
    path_text_byte = 128, // the same without the backslash, which some servers read as a slash
};

consteval std::array<std::uint8_t, 256> make_classes()
{
    std::array<std::uint8_t, 256> table{};
    const auto mark = [&](std::string_view bytes, unsigned as) {
        for (const char c : bytes)
            table[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(as);
    };
    for (unsigned c = 0; c < 256; ++c) {
        if (c == '\t' || (c >= 0x20 && c != 0x7f))
            table[c] |= text_byte;
        if (c > 0x20 && c < 0x7f && c != '#' && c != '%')
            table[c] |= c == '\\' ? target_byte : target_byte | path_text_byte;
    }
    constexpr std::string_view alnum = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    mark(alnum, token_byte | unreserved_byte | path_byte);
    mark("!#$%&'*+-.^_`|~", token_byte);
    mark("-._~", unreserved_byte | path_byte);
    mark("!$&'()*+,;=:@/", path_byte);
    mark("0123456789", digit_byte);
    mark("_", underscore_byte);
    return table;
}

inline constexpr auto classes = make_classes();

} // namespace detail

constexpr bool is_class(char c, unsigned mask) { return (detail::classes[static_cast<unsigned char>(c)] & mask) != 0; }
constexpr bool is_token_byte(char c) { return is_class(c, detail::token_byte); }
constexpr bool is_digit(char c) { return is_class(c, detail::digit_byte); }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Returns -1 if it is not a hexadecimal digit.
constexpr int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char low = to_lower(c);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

constexpr std::string_view trim(std::string_view text)
{
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    return text;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b)
{
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (to_lower(a[i]) != to_lower(b[i]))
            return false;
    return true;
}

// Returns whether the text has at least one byte, and all are token bytes.
constexpr bool is_token(std::string_view text)
{
    for (const char c : text)
        if (!is_token_byte(c))
            return false;
    return !text.empty();
}

// Reads 1*DIGIT of at most 2^63-1, with no sign and no space (A2, A3).
constexpr bool parse_decimal(std::string_view text, std::uint64_t& value)
{
    constexpr std::uint64_t most = INT64_MAX;
    std::uint64_t sum = 0;
    for (const char c : text) {
        if (!is_digit(c))
            return false;
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (sum > (most - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    value = sum;
    return !text.empty();
}

// The items of a comma-separated list, trimmed; empty items are skipped (RFC 9110 §5.6.1). Not for lists whose items
// may be quoted.
class list_items
{
public:
    explicit constexpr list_items(std::string_view list) : rest_(list) {}

    constexpr bool next(std::string_view& item)
    {
        while (!rest_.empty()) {
            const auto comma = rest_.find(',');
            item = trim(rest_.substr(0, comma));
            rest_ = comma == std::string_view::npos ? std::string_view{} : rest_.substr(comma + 1);
            if (!item.empty())
                return true;
        }
        return false;
    }

private:
    std::string_view rest_;
};

// Writes `value` in decimal to `at` and returns the end of the text. REQUIRES: room for 20 bytes.
char* write_decimal(char* at, std::uint64_t value);

// Returns the first byte in [at, end) that no line of a head may contain, a control byte other than HTAB, or `end`.
// REQUIRES: [begin, at) can be read too. Inline because every line of every head is scanned.
inline const char* find_control(const char* begin, const char* at, const char* end)
{
#if defined(__SSE2__)
    const auto find_bad = [](const char* from) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m128i printable = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(0x20)), bytes);
        const __m128i fine = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)),
                                              _mm_or_si128(printable, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'))));
        return static_cast<unsigned>(_mm_movemask_epi8(fine)) ^ 0xffffU;
    };
    for (; end - at >= 16; at += 16) {
        if (const auto bad = find_bad(at); bad != 0)
            return at + __builtin_ctz(bad);
    }
    if (end - begin >= 16) { // the rest, together with bytes before it
        const auto bad = find_bad(end - 16) >> (16 - (end - at));
        return bad != 0 ? at + __builtin_ctz(bad) : end;
    }
#endif
    while (at != end && is_class(*at, detail::text_byte))
        ++at;
    return at;
}

// Returns whether all bytes are printable ASCII other than quote and backslash: such a text needs no escapes in quotes.
bool is_plain_text(std::string_view text);

// Returns the size of the name at `at` if it consists of letters, digits and "-" and its ":" is among the first 16
// bytes; zero if the name has to be read byte by byte. REQUIRES: [at, end) can be read.
inline std::size_t plain_name_size(const char* at, const char* end)
{
#if defined(__SSE2__)
    if (end - at < 16)
        return 0;
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto colons = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(':'))));
    if (colons == 0)
        return 0;
    // first <= c <= last, as the unsigned comparison min(c - first, last - first) == c - first.
    const auto between = [](__m128i value, char first, char last) {
        const __m128i offset = _mm_sub_epi8(value, _mm_set1_epi8(first));
        return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8(static_cast<char>(last - first))), offset);
    };
    const __m128i letter = between(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 'z');
    const __m128i plain =
        _mm_or_si128(_mm_or_si128(letter, between(bytes, '0', '9')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-')));
    const auto before_colon = (colons & (~colons + 1)) - 1;
    const auto plain_bits = static_cast<unsigned>(_mm_movemask_epi8(plain));
    return (plain_bits & before_colon) == before_colon ? static_cast<std::size_t>(__builtin_ctz(colons)) : 0;
#else
    static_cast<void>(at);
    static_cast<void>(end);
    return 0;
#endif
}

} // namespace headgate::http
