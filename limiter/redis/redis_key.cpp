#include "limiter/redis/redis_key.hpp"

#include <openssl/sha.h>

namespace headgate::limiter::redis {

namespace {

constexpr std::string_view prefix = "hg:1:{";
constexpr std::string_view hex = "0123456789ABCDEF";
constexpr std::size_t digest_bytes = 16;
constexpr char digest_mark = '~';

bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == '@' || c == '/' || c == '=' || c == '+' || c == ',';
}

void append_hex(std::string& out, unsigned char byte)
{
    out += hex[byte >> 4];
    out += hex[byte & 15];
}

// Appends the text with escapes. The group ends at the first bare colon, so that a principal may have colons, as
// addresses do.
void append_escaped(std::string& out, std::string_view text, bool colon_is_safe)
{
    for (const char c : text) {
        if (is_safe(c) || (c == ':' && colon_is_safe)) {
            out += c;
        } else {
            out += '%';
            append_hex(out, static_cast<unsigned char>(c));
        }
    }
}

void append_digest(std::string& out, std::string_view principal)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(principal.data()), principal.size(), digest);
    out += digest_mark;
    for (std::size_t i = 0; i < digest_bytes; ++i)
        append_hex(out, digest[i]);
}

std::optional<std::string> unescaped(std::string_view text)
{
    std::string out;
    while (!text.empty()) {
        if (text[0] != '%') {
            out += text[0];
            text.remove_prefix(1);
            continue;
        }
        if (text.size() < 3)
            return {};
        const auto high = hex.find(text[1]), low = hex.find(text[2]);
        if (high == hex.npos || low == hex.npos)
            return {};
        out += static_cast<char>(high << 4 | low);
        text.remove_prefix(3);
    }
    return out;
}

} // namespace

void append_key(std::string& out, std::string_view group, std::string_view principal, key_form form)
{
    out += prefix;
    append_escaped(out, group, false);
    out += ':';
    const auto begin = out.size();
    if (form == key_form::plain_when_short && principal.size() <= max_plain_principal) {
        append_escaped(out, principal, true);
        if (out.size() - begin <= max_plain_principal) {
            out += '}';
            return;
        }
        out.resize(begin);
    }
    append_digest(out, principal);
    out += '}';
}

std::string pattern_of_group(std::string_view group)
{
    std::string out(prefix);
    append_escaped(out, group, false);
    return out + ":*}";
}

std::optional<key_name> parse_key(std::string_view key)
{
    if (!key.starts_with(prefix) || !key.ends_with('}'))
        return {};
    key.remove_prefix(prefix.size());
    key.remove_suffix(1);
    const auto colon = key.find(':');
    if (colon == key.npos)
        return {};
    const auto principal = key.substr(colon + 1);
    const bool digested = principal.starts_with(digest_mark);
    auto group = unescaped(key.substr(0, colon));
    auto owner = digested ? std::string(principal) : unescaped(principal);
    if (!group || !owner)
        return {};
    return key_name{std::move(*group), std::move(*owner), digested};
}

std::string rules_key(std::uint64_t fingerprint) { return "hg:1:rules:" + std::to_string(fingerprint); }

} // namespace headgate::limiter::redis
