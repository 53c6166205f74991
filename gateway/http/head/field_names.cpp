#include "gateway/http/head/field_names.hpp"

#include "gateway/http/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace headgate::http {

namespace {

constexpr std::size_t longest = 24;

// The text is part of the row, so that a lookup reads one cache line.
struct alignas(32) known_name
{
    constexpr known_name(std::string_view name, field_id number)
        : size(static_cast<std::uint8_t>(name.size())), id(number)
    {
        std::copy(name.begin(), name.end(), text.begin());
    }
    constexpr std::string_view view() const { return {text.data(), size}; }

    std::array<char, longest> text{}; // lower case
    std::uint8_t size;
    field_id id;
};

using enum field_id;

constexpr known_name names[] = {
    {"authorization", authorization},
    {"connection", connection},
    {"content-length", content_length},
    {"content-type", content_type},
    {"cookie", cookie},
    {"date", date},
    {"expect", expect},
    {"forwarded", forwarded},
    {"host", host},
    {"http2-settings", http2_settings},
    {"keep-alive", keep_alive},
    {"max-forwards", max_forwards},
    {"proxy-authenticate", proxy_authenticate},
    {"proxy-authorization", proxy_authorization},
    {"proxy-connection", proxy_connection},
    {"ratelimit", ratelimit},
    {"ratelimit-limit", ratelimit_limit},
    {"ratelimit-policy", ratelimit_policy},
    {"ratelimit-remaining", ratelimit_remaining},
    {"ratelimit-reset", ratelimit_reset},
    {"referer", referer},
    {"retry-after", retry_after},
    {"sec-websocket-accept", sec_websocket_accept},
    {"sec-websocket-extensions", sec_websocket_extensions},
    {"sec-websocket-key", sec_websocket_key},
    {"sec-websocket-protocol", sec_websocket_protocol},
    {"sec-websocket-version", sec_websocket_version},
    {"server", server},
    {"te", te},
    {"trailer", trailer},
    {"transfer-encoding", transfer_encoding},
    {"upgrade", upgrade},
    {"user-agent", user_agent},
    {"via", via},
    {"x-forwarded-for", x_forwarded_for},
    {"x-forwarded-host", x_forwarded_host},
    {"x-forwarded-port", x_forwarded_port},
    {"x-forwarded-proto", x_forwarded_proto},
    {"x-ratelimit-explain", x_ratelimit_explain},
    {"x-ratelimit-limit", x_ratelimit_limit},
    {"x-ratelimit-remaining", x_ratelimit_remaining},
    {"x-ratelimit-reset", x_ratelimit_reset},
    {"x-real-ip", x_real_ip},
    {"x-request-id", x_request_id},
};
constexpr std::size_t buckets = 128;

// Returns the bucket of a name. It is a perfect hash: no two names above share a bucket (checked below, at compile
// time).
constexpr std::size_t bucket_of(std::size_t size, char first, char late, char last)
{
    const auto fold = [](char c) { return static_cast<std::size_t>(static_cast<unsigned char>(c) | 0x20U); };
    return (size + fold(first) * 19 + fold(late) * 25 + fold(last)) % buckets;
}
constexpr std::size_t bucket_of(std::string_view name)
{
    return bucket_of(name.size(), name.front(), name[name.size() * 3 / 4], name.back());
}

struct name_table
{
    std::array<std::uint8_t, buckets> row{}; // 1-based; 0 is no name
    bool perfect = true;
};
consteval name_table make_table()
{
    name_table table;
    std::uint8_t at = 0;
    for (const auto& known : names) {
        auto& row = table.row[bucket_of(known.view())];
        table.perfect = table.perfect && row == 0;
        row = ++at;
    }
    return table;
}
constexpr auto table = make_table();
static_assert(table.perfect, "two field names share a bucket: change the multipliers of bucket_of");

// Converts to lower case by setting 0x20. REQUIRES: token bytes; no other of them becomes a letter, a digit or "-".
template <class Word>
Word load(const char* at) noexcept
{
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}
template <class Word>
bool differ(const char* token, const char* lower) noexcept
{
    return (load<Word>(token) | static_cast<Word>(0x2020202020202020u)) != load<Word>(lower);
}
// Compares whole words; the last word overlaps the previous one.
bool same_token(std::string_view token, std::string_view lower) noexcept
{
    const auto size = lower.size();
    const char *a = token.data(), *b = lower.data();
    if (size >= 8) {
        for (std::size_t i = 0; i + 8 < size; i += 8) {
            if (differ<std::uint64_t>(a + i, b + i))
                return false;
        }
        return !differ<std::uint64_t>(a + size - 8, b + size - 8);
    }
    if (size >= 4)
        return !differ<std::uint32_t>(a, b) && !differ<std::uint32_t>(a + size - 4, b + size - 4);
    return !differ<std::uint16_t>(a, b) && !differ<std::uint16_t>(a + size - 2, b + size - 2);
}

} // namespace

field_id find_field_id(std::string_view name) noexcept
{
    if (name.size() < 2 || name.size() > longest)
        return other;
    const auto row = table.row[bucket_of(name)];
    if (row == 0)
        return other;
    const auto& known = names[row - 1];
    return known.size == name.size() && same_token(name, known.view()) ? known.id : other;
}

field_id find_short_field_id(const char* name, std::size_t size) noexcept
{
#if defined(__SSE2__)
    const auto row = table.row[bucket_of({name, size})];
    if (row == 0)
        return other;
    const auto& known = names[row - 1];
    // The bytes after the name are set to zero, as in the row.
    alignas(16) static constexpr std::uint8_t kept[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                          255, 255, 255, 255, 255, 255, 255, 255};
    const auto load = [](const auto* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    const __m128i folded = _mm_and_si128(_mm_or_si128(load(name), _mm_set1_epi8(0x20)), load(kept + 16 - size));
    const bool same = _mm_movemask_epi8(_mm_cmpeq_epi8(folded, load(known.text.data()))) == 0xffff;
    return same && known.size == size ? known.id : other;
#else
    return find_field_id({name, size});
#endif
}

bool imitates_protected_field(std::string_view name) noexcept
{
    if (name.size() > longest || name.find('_') == std::string_view::npos)
        return false;
    char dashed[longest];
    for (std::size_t i = 0; i < name.size(); ++i)
        dashed[i] = name[i] == '_' ? '-' : name[i];
    return is_protected(find_field_id({dashed, name.size()}));
}

bool imitates(std::string_view name, std::string_view guarded) noexcept
{
    if (name.size() != guarded.size() || equals_ignoring_case(name, guarded))
        return false;
    const auto fold = [](char c) { return c == '_' ? '-' : to_lower(c); };
    for (std::size_t i = 0; i < name.size(); ++i)
        if (fold(name[i]) != fold(guarded[i]))
            return false;
    return true;
}

} // namespace headgate::http
