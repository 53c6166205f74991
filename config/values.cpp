// Numbers with units: counts, durations, sizes, limits; and the statuses of an outcome.
#include "config/values.hpp"

#include <algorithm>
#include <charconv>

namespace headgate::config {

namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ')
        text.remove_suffix(1);
    return text;
}

struct quantity
{
    std::uint64_t number = 0;
    std::string_view unit;
};

// Splits `25ms` into 25 and `ms`.
parsed<quantity> split(std::string_view text, const char* expected)
{
    text = trimmed(text);
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits]))
        ++digits;
    if (digits == 0) {
        const bool negative = text.size() > 1 && text[0] == '-' && is_digit(text[1]);
        return {{}, negative ? std::string("it must not be negative") : std::string(expected)};
    }
    quantity out;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, out.number);
    if (error != std::errc{})
        return {{}, "the number is too large"};
    out.unit = trimmed(text.substr(digits));
    if (!out.unit.empty() && (out.unit[0] == '.' || out.unit[0] == ','))
        return {{}, "it must be a whole number"};
    return {out, {}};
}

struct unit_name
{
    std::string_view name;
    std::uint64_t factor;
};

std::uint64_t factor_of(std::string_view unit, const unit_name* begin, const unit_name* end)
{
    const auto* it = std::find_if(begin, end, [&](const unit_name& u) { return u.name == unit; });
    return it == end ? 0 : it->factor;
}

constexpr std::uint64_t second = 1'000'000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
constexpr unit_name duration_units[] = {{"us", 1},       {"ms", 1'000}, {"s", second}, {"m", minute},
                                        {"min", minute}, {"h", hour},   {"d", day}};
constexpr unit_name period_units[] = {
    {"s", second},     {"sec", second},    {"second", second},  {"seconds", second},  {"m", minute},
    {"min", minute},   {"minute", minute}, {"minutes", minute}, {"h", hour},          {"hour", hour},
    {"hours", hour},   {"d", day},         {"day", day},        {"days", day},        {"w", 7 * day},
    {"week", 7 * day}, {"weeks", 7 * day}, {"month", 30 * day}, {"months", 30 * day}, {"ms", 1'000},
    {"us", 1}};
constexpr unit_name size_units[] = {
    {"B", 1},      {"KB", 1'000},        {"MB", 1'000'000},          {"GB", 1'000'000'000},
    {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}};

constexpr std::uint64_t longest = 100ULL * 365 * day; // a longer duration is certainly a mistake

limiter::calendar_unit calendar_of(std::string_view unit)
{
    if (unit == "d" || unit == "day")
        return limiter::calendar_unit::day;
    if (unit == "w" || unit == "week")
        return limiter::calendar_unit::week;
    if (unit == "month")
        return limiter::calendar_unit::month;
    return limiter::calendar_unit::none;
}

} // namespace

parsed<std::uint64_t> parse_count(std::string_view text)
{
    const auto got = split(text, "it must be a whole number, such as 100");
    if (!got)
        return {0, got.complaint};
    if (!got.value.unit.empty())
        return {0, "it must be a whole number without a unit, such as 100"};
    return {got.value.number, {}};
}

parsed<duration> parse_duration(std::string_view text)
{
    const char* expected = "it must be a number and a unit (us, ms, s, m, h, d), such as 25ms or 10s";
    const auto got = split(text, expected);
    if (!got)
        return {{}, got.complaint};
    const auto& [number, unit] = got.value;
    if (unit.empty())
        return {{},
                number == 0
                    ? std::string{}
                    : "the unit is missing; write " + std::to_string(number) + "s or " + std::to_string(number) + "ms"};
    const auto factor = factor_of(unit, std::begin(duration_units), std::end(duration_units));
    if (factor == 0)
        return {{}, expected};
    if (number > longest / factor)
        return {{}, "it is too long"};
    return {duration(static_cast<std::int64_t>(number * factor)), {}};
}

parsed<byte_size> parse_size(std::string_view text)
{
    const char* expected = "it must be a number and a unit (B, KiB, MiB, GiB, KB, MB, GB), such as 64KiB";
    const auto got = split(text, expected);
    if (!got)
        return {{}, got.complaint};
    const auto& [number, unit] = got.value;
    if (unit.empty())
        return {{},
                number == 0 ? std::string{}
                            : "the unit is missing; write " + std::to_string(number) + "B or " +
                                  std::to_string(number) + "KiB"};
    const auto factor = factor_of(unit, std::begin(size_units), std::end(size_units));
    if (factor == 0)
        return {{}, expected};
    if (number > (std::uint64_t{1} << 62U) / factor)
        return {{}, "it is too large"};
    return {{number * factor}, {}};
}

parsed<limit_value> parse_limit(std::string_view text)
{
    const char* expected =
        "a limit is N/unit (second, minute, hour, day, week, month) or N per 90s, such as 60/minute; "
        "in plans and overrides also `unlimited` or `blocked`";
    limit_value out;
    out.text = std::string(trimmed(text));
    if (out.text == "unlimited" || out.text == "blocked") {
        out.what = out.text == "blocked" ? limit_value::form::blocked : limit_value::form::unlimited;
        return {out, {}};
    }
    const auto got = split(out.text, expected);
    if (!got)
        return {out, got.complaint};
    out.count = got.value.number;
    if (out.count > limiter::max_count)
        return {out, "the number is too large; at most 9007199254740992 (2^53) can be counted exactly"};
    auto rest = got.value.unit;
    if (rest.empty()) {
        out.what = limit_value::form::count;
        return {out, out.count == 0 ? "a limit of 0 would never admit anything; use `blocked` in plans or overrides, "
                                      "or remove the route"
                                    : ""};
    }
    if (rest.starts_with("/"))
        rest = trimmed(rest.substr(1));
    else if (rest.starts_with("per "))
        rest = trimmed(rest.substr(4));
    else
        return {out, expected};
    if (out.count == 0)
        return {out,
                "a limit of 0 would refuse every request; use `blocked` in plans or overrides, or remove the route"};
    std::uint64_t times = 1;
    if (!rest.empty() && is_digit(rest[0])) {
        const auto length = split(rest, expected);
        if (!length)
            return {out, length.complaint};
        times = length.value.number;
        rest = length.value.unit;
        if (times == 0)
            return {out, "the period is 0; it must be longer"};
    } else {
        out.calendar = calendar_of(rest);
    }
    const auto factor = factor_of(rest, std::begin(period_units), std::end(period_units));
    if (factor == 0)
        return {out, expected};
    if (times > 366 * day / factor)
        return {out, "the period is longer than a year"};
    out.period = duration(static_cast<std::int64_t>(times * factor));
    return {out, {}};
}

parsed<outcome_match> parse_outcome(std::string_view text)
{
    const char* expected = "it must be a status (401), a class (5xx), a range (400-499), upstream_failure or timeout";
    outcome_match out;
    out.upstream_failure = text == "upstream_failure";
    out.timeout = text == "timeout";
    if (out.upstream_failure || out.timeout)
        return {out, {}};
    if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5') {
        out.first = (text[0] - '0') * 100;
        out.last = out.first + 99;
        return {out, {}};
    }
    const auto dash = text.find('-');
    const auto first = parse_count(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_count(text.substr(dash + 1));
    if (!first || !last || first.value < 100 || last.value > 599 || first.value > last.value)
        return {out, expected};
    out.first = static_cast<int>(first.value);
    out.last = static_cast<int>(last.value);
    return {out, {}};
}

std::string to_text(duration value)
{
    const auto us = static_cast<std::uint64_t>(value.count());
    if (us == 0)
        return "0s";
    for (const auto& [name, factor] : {unit_name{"h", hour}, {"m", minute}, {"s", second}, {"ms", 1'000}})
        if (us % factor == 0 && (us / factor > 1 || name != "m"))
            return std::to_string(us / factor) + std::string(name);
    return std::to_string(us) + "us";
}

std::string to_text(byte_size value)
{
    if (value == byte_size::unlimited())
        return "unlimited";
    for (const auto& [name, factor] : {unit_name{"GiB", 1024 * 1024 * 1024}, {"MiB", 1024 * 1024}, {"KiB", 1024}})
        if (value.bytes != 0 && value.bytes % factor == 0)
            return std::to_string(value.bytes / factor) + std::string(name);
    return std::to_string(value.bytes) + "B";
}

} // namespace headgate::config
