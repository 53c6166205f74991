#include "limiter/redis/fingerprint.hpp"

#include "limiter/redis/numbers.hpp"

#include <openssl/sha.h>

#include <charconv>

namespace headgate::limiter::redis {

namespace {

constexpr std::string_view hex = "0123456789abcdef";

std::uint64_t digest_of(std::string_view text)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < 8; ++i)
        n = n << 8 | digest[i];
    return n;
}

// Describes a time zone by its offsets in two recent years: they distinguish today's zones in every release of tzdata.
std::string describe_zone(const time_zone* zone)
{
    if (!zone)
        return "-";
    using namespace std::chrono;
    std::string offsets;
    for (sys_seconds at = sys_days{2024y / January / 1}; at < sys_days{2026y / January / 1}; at += hours{24 * 7})
        offsets += std::to_string(zone->offset_at(at).count()) + ' ';
    return std::to_string(digest_of(offsets) >> 32);
}

void append_name(std::string& out, std::string_view name)
{
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > ' ' && byte < 0x7f && c != '%') {
            out += c;
        } else {
            out += '%';
            out += hex[byte >> 4];
            out += hex[byte & 15];
        }
    }
}

std::optional<std::string> parse_name(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size())
            return {};
        const auto high = hex.find(text[i + 1]), low = hex.find(text[i + 2]);
        if (high == hex.npos || low == hex.npos)
            return {};
        out += static_cast<char>(high << 4 | low);
        i += 2;
    }
    return out;
}

void append_rule(std::string& out, const rule& r)
{
    const auto add = [&out](std::uint64_t n) { (out += std::to_string(n)) += ' '; };
    add(static_cast<std::uint64_t>(r.kind));
    add(r.count);
    add(static_cast<std::uint64_t>(r.period.count()));
    add(r.capacity);
    add(r.initial);
    (out += r.delay_after ? std::to_string(*r.delay_after) : "-") += ' ';
    add(static_cast<std::uint64_t>(r.align));
    add(static_cast<std::uint64_t>(r.calendar));
    (out += describe_zone(r.zone.get())) += ' ';
    add((r.shadow ? 1u : 0u) | (r.unlimited ? 2u : 0u) | (r.count_refused ? 4u : 0u));
    append_name(out, r.name);
    out += '\n';
}

// Reads the words of one line, each with its expected type.
class line_reader
{
public:
    explicit line_reader(std::string_view line) : rest_(line) {}

    std::string_view word()
    {
        const auto end = rest_.find(' ');
        const auto found = rest_.substr(0, end);
        rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
        return found;
    }
    std::uint64_t number(std::uint64_t most) { return number(word(), most); }
    std::uint64_t number(std::string_view digits, std::uint64_t most)
    {
        std::uint64_t n = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
        if (error != std::errc{} || end != digits.data() + digits.size() || n > most)
            good_ = false;
        return n;
    }
    std::string_view rest() const { return rest_; }
    bool good() const { return good_; }

private:
    std::string_view rest_;
    bool good_ = true;
};

std::optional<rule> parse_rule(std::string_view line)
{
    line_reader words(line);
    rule r;
    r.kind = static_cast<algorithm>(words.number(static_cast<std::uint64_t>(algorithm::concurrency)));
    r.count = words.number(max_count);
    r.period = microseconds{static_cast<std::int64_t>(words.number(largest))};
    r.capacity = words.number(max_count);
    r.initial = words.number(max_count);
    if (const auto delay = words.word(); delay != "-")
        r.delay_after = words.number(delay, max_count);
    r.align = static_cast<window_align>(words.number(static_cast<std::uint64_t>(window_align::clock)));
    r.calendar = static_cast<calendar_unit>(words.number(static_cast<std::uint64_t>(calendar_unit::month)));
    words.word(); // the time zone, of which only the digest is known
    const auto flags = words.number(7);
    r.shadow = flags & 1, r.unlimited = flags & 2, r.count_refused = flags & 4;
    auto name = parse_name(words.rest());
    const bool possible = r.count > 0 && (r.kind == algorithm::concurrency || r.period.count() > 0) &&
                          (r.kind != algorithm::sliding_log || r.count <= max_log_records);
    if (!words.good() || !name || !possible)
        return {};
    r.name = std::move(*name);
    return r;
}

} // namespace

std::string describe_rules(std::span<const rule> rules)
{
    std::string out;
    for (const auto& r : rules)
        append_rule(out, r);
    return out;
}

std::string describe_rules(const rule_group& group)
{
    std::string out;
    for (const auto& m : group.members())
        append_rule(out, m.limits.limits);
    return out;
}

std::optional<std::vector<rule>> parse_rules(std::string_view text)
{
    std::vector<rule> rules;
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (end == text.npos || rules.size() == max_rules_per_group)
            return {};
        auto r = parse_rule(text.substr(0, end));
        if (!r)
            return {};
        rules.push_back(std::move(*r));
        text.remove_prefix(end + 1);
    }
    if (rules.empty())
        return {};
    return rules;
}

std::uint64_t fingerprint_of(std::string_view description) { return digest_of(description) % largest + 1; }

} // namespace headgate::limiter::redis
