#include "limiter/core/time_zone.hpp"

#include <algorithm>
#include <cstddef>

namespace headgate::limiter {

namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// Reads big-endian numbers, never past the end.
class byte_reader
{
public:
    explicit byte_reader(std::string_view bytes) : rest_(bytes) {}

    bool skip(std::size_t n)
    {
        if (n > rest_.size())
            return failed_ = true, false;
        rest_.remove_prefix(n);
        return true;
    }
    std::int64_t number(std::size_t width)
    {
        if (width > rest_.size()) {
            failed_ = true;
            return 0;
        }
        std::uint64_t value = (static_cast<unsigned char>(rest_[0]) & 0x80u) ? ~std::uint64_t{0} : 0;
        for (std::size_t i = 0; i < width; ++i)
            value = value << 8 | static_cast<unsigned char>(rest_[i]);
        rest_.remove_prefix(width);
        return static_cast<std::int64_t>(value);
    }
    std::string_view rest() const { return rest_; }
    bool failed() const { return failed_; }

private:
    std::string_view rest_;
    bool failed_ = false;
};

struct tzif_header
{
    char version = 0;
    std::size_t utc_flags = 0, std_flags = 0, leaps = 0, times = 0, types = 0, chars = 0;
};

bool read_header(byte_reader& in, tzif_header& out)
{
    if (!in.rest().starts_with("TZif") || in.rest().size() < 44)
        return false;
    out.version = in.rest()[4];
    in.skip(20);
    for (auto* field : {&out.utc_flags, &out.std_flags, &out.leaps, &out.times, &out.types, &out.chars}) {
        const auto value = in.number(4);
        if (value < 0 || value > 1'000'000)
            return false;
        *field = static_cast<std::size_t>(value);
    }
    return out.types > 0;
}

// Reads [+-]hh[:mm[:ss]], as in a POSIX TZ string.
bool read_clock(std::string_view& text, seconds& out)
{
    std::int64_t sign = 1;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        sign = text[0] == '-' ? -1 : 1;
        text.remove_prefix(1);
    }
    std::int64_t total = 0;
    std::int64_t unit = 3600;
    for (int part = 0; part < 3; ++part, unit /= 60) {
        if (part > 0) {
            if (text.empty() || text[0] != ':')
                break;
            text.remove_prefix(1);
        }
        std::int64_t value = 0;
        std::size_t digits = 0;
        while (digits < text.size() && digits < 3 && text[digits] >= '0' && text[digits] <= '9')
            value = value * 10 + (text[digits++] - '0');
        if (digits == 0)
            return false;
        text.remove_prefix(digits);
        total += value * unit;
    }
    out = seconds{sign * total};
    return true;
}

bool skip_zone_name(std::string_view& text)
{
    std::size_t n = 0;
    if (!text.empty() && text[0] == '<') {
        n = text.find('>');
        if (n == std::string_view::npos)
            return false;
        ++n;
    } else {
        while (n < text.size() && ((text[n] | 0x20) >= 'a' && (text[n] | 0x20) <= 'z'))
            ++n;
        if (n < 3)
            return false;
    }
    text.remove_prefix(n);
    return true;
}

bool read_small_number(std::string_view& text, int low, int high, int& out)
{
    int value = 0;
    std::size_t digits = 0;
    while (digits < text.size() && digits < 2 && text[digits] >= '0' && text[digits] <= '9')
        value = value * 10 + (text[digits++] - '0');
    if (digits == 0 || value < low || value > high)
        return false;
    text.remove_prefix(digits);
    out = value;
    return true;
}

} // namespace

std::shared_ptr<const time_zone> time_zone::parse(std::string_view tzif)
{
    byte_reader in(tzif);
    tzif_header header;
    if (!read_header(in, header))
        return nullptr;
    std::size_t width = 4;
    if (header.version >= '2') {
        // The first block has the data in 32 bits, for old readers; the second has it in 64 bits.
        in.skip(header.times * 5 + header.types * 6 + header.chars + header.leaps * 8 + header.std_flags +
                header.utc_flags);
        if (in.failed() || !read_header(in, header))
            return nullptr;
        width = 8;
    }
    auto zone = std::make_shared<time_zone>();
    for (std::size_t i = 0; i < header.times; ++i)
        zone->transitions_.push_back(in.number(width));
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < header.times; ++i)
        kinds.push_back(static_cast<std::size_t>(in.number(1)) & 0xff);
    std::vector<std::int32_t> type_offsets;
    for (std::size_t i = 0; i < header.types; ++i) {
        type_offsets.push_back(static_cast<std::int32_t>(in.number(4)));
        in.skip(2);
    }
    in.skip(header.chars + header.leaps * (width + 4) + header.std_flags + header.utc_flags);
    if (in.failed() || !std::is_sorted(zone->transitions_.begin(), zone->transitions_.end()))
        return nullptr;
    zone->first_offset_ = type_offsets[0];
    for (const auto kind : kinds) {
        if (kind >= type_offsets.size())
            return nullptr;
        zone->offsets_.push_back(type_offsets[kind]);
    }
    auto footer = in.rest();
    if (width == 8 && footer.size() >= 2 && footer.front() == '\n') {
        footer = footer.substr(1, footer.find('\n', 1) - 1);
        zone->has_footer_ = !footer.empty() && parse_footer(footer, zone->footer_);
    }
    return zone;
}

bool time_zone::parse_footer(std::string_view text, yearly_rule& out)
{
    // POSIX offsets are positive west of UTC: CET-1 is one hour ahead of UTC.
    if (!skip_zone_name(text) || !read_clock(text, out.standard))
        return false;
    out.standard = -out.standard;
    if (text.empty())
        return true;
    if (!skip_zone_name(text))
        return false;
    out.has_daylight = true;
    out.daylight = out.standard + std::chrono::hours{1};
    if (!text.empty() && text[0] != ',') {
        if (!read_clock(text, out.daylight))
            return false;
        out.daylight = -out.daylight;
    }
    for (auto* date : {&out.starts, &out.ends}) {
        if (!text.starts_with(",M"))
            return false; // no zone of tzdata uses the day-of-year forms
        text.remove_prefix(2);
        date->time = std::chrono::hours{2};
        if (!read_small_number(text, 1, 12, date->month) || !text.starts_with("."))
            return false;
        text.remove_prefix(1);
        if (!read_small_number(text, 1, 5, date->week) || !text.starts_with("."))
            return false;
        text.remove_prefix(1);
        if (!read_small_number(text, 0, 6, date->weekday))
            return false;
        if (text.starts_with("/")) {
            text.remove_prefix(1);
            if (!read_clock(text, date->time))
                return false;
        }
    }
    return text.empty();
}

seconds time_zone::offset_by_rule(sys_seconds at) const
{
    if (!footer_.has_daylight)
        return footer_.standard;
    using namespace std::chrono;
    const auto year = year_month_day{floor<days>(at + footer_.standard)}.year();
    const auto moment = [&](const rule_date& date, seconds offset_before) {
        const auto month_of = year / static_cast<int>(date.month);
        const weekday day{static_cast<unsigned>(date.weekday)};
        const sys_days when = date.week == 5 ? sys_days{month_of / day[last]}
                                             : sys_days{month_of / day[static_cast<unsigned>(date.week)]};
        return sys_seconds{when} + date.time - offset_before;
    };
    const auto starts = moment(footer_.starts, footer_.standard);
    const auto ends = moment(footer_.ends, footer_.daylight);
    const bool daylight = starts < ends ? (at >= starts && at < ends) : (at >= starts || at < ends);
    return daylight ? footer_.daylight : footer_.standard;
}

seconds time_zone::offset_at(sys_seconds at) const
{
    const auto t = at.time_since_epoch().count();
    if (has_footer_ && (transitions_.empty() || t >= transitions_.back()))
        return offset_by_rule(at);
    const auto next = std::upper_bound(transitions_.begin(), transitions_.end(), t);
    if (next == transitions_.begin())
        return seconds{first_offset_};
    return seconds{offsets_[static_cast<std::size_t>(next - transitions_.begin()) - 1]};
}

sys_seconds time_zone::to_utc(std::chrono::local_seconds local) const
{
    using namespace std::chrono;
    const sys_seconds as_utc{local.time_since_epoch()};
    // No zone is more than a day from UTC, and no zone changes twice within two days: the offset is one of these two.
    const auto before = offset_at(as_utc - hours{24});
    const auto after = offset_at(as_utc + hours{24});
    const auto early = as_utc - std::max(before, after);
    const auto late = as_utc - std::min(before, after);
    if (early + offset_at(early) == as_utc)
        return early;
    if (before <= after && late + offset_at(late) != as_utc) {
        // The local time was skipped: find the change of the offset between the two candidates.
        auto low = early, high = late;
        while (high - low > seconds{1}) {
            const auto middle = low + (high - low) / 2;
            (offset_at(middle) == before ? low : high) = middle;
        }
        return high;
    }
    return late;
}

} // namespace headgate::limiter
