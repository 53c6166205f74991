// Windows of days, weeks and months of a time zone, over all changes of its offset.
#include "limiter/core/calendar.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

using namespace headgate::testing;
using std::chrono::hours, std::chrono::minutes, std::chrono::sys_days, std::chrono::year, std::chrono::month,
    std::chrono::day;

namespace {

std::shared_ptr<const time_zone> zone(const std::string& name)
{
    std::ifstream in("/usr/share/zoneinfo/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    auto parsed = time_zone::parse(bytes);
    REQUIRE_MESSAGE(parsed, name, " must be readable: is the package tzdata installed?");
    return parsed;
}

rule per(calendar_unit unit, const std::string& zone_name, std::uint64_t count = 3)
{
    auto r = fixed_window(count, 24h);
    r.calendar = unit;
    r.zone = zone(zone_name);
    return r;
}

time_point utc(int y, unsigned m, unsigned d, int h = 0, int min = 0)
{
    return sys_days{year{y} / month{m} / day{d}} + hours{h} + minutes{min};
}

} // namespace

TEST_CASE("calendar: a day in Paris has 23 hours in March and 25 in October")
{
    const auto r = per(calendar_unit::day, "Europe/Paris");
    CHECK(window_end(r, utc(2025, 3, 29, 23)) == utc(2025, 3, 30, 22)); // midnight to midnight, 23 hours
    CHECK(window_end(r, utc(2025, 10, 25, 22)) == utc(2025, 10, 26, 23));
    CHECK(window_end(r, utc(2025, 7, 1, 21, 59)) == utc(2025, 7, 1, 22));
    CHECK(window_end(r, utc(2025, 7, 1, 22)) == utc(2025, 7, 2, 22));
}

TEST_CASE("calendar: weeks begin on Monday and months on the first, in the local time of the zone")
{
    const auto week = per(calendar_unit::week, "America/New_York");
    CHECK(window_end(week, utc(2025, 6, 2, 3, 59)) == utc(2025, 6, 2, 4)); // Sunday evening in New York
    CHECK(window_end(week, utc(2025, 6, 2, 4)) == utc(2025, 6, 9, 4));
    const auto month = per(calendar_unit::month, "Asia/Tokyo");
    CHECK(window_end(month, utc(2024, 2, 29, 14, 59)) == utc(2024, 2, 29, 15));
    CHECK(window_end(month, utc(2024, 2, 29, 15)) == utc(2024, 3, 31, 15));
    CHECK(window_end(month, utc(2024, 12, 31, 16)) == utc(2025, 1, 31, 15));
}

TEST_CASE("calendar: no zone means UTC")
{
    auto r = fixed_window(1, 24h);
    r.calendar = calendar_unit::month;
    CHECK(window_end(r, utc(2025, 2, 10)) == utc(2025, 3, 1));
}

TEST_CASE("calendar: the limit holds for a whole local day, and the next day begins at zero")
{
    single_key key(per(calendar_unit::day, "Europe/Paris"), utc(2025, 3, 30));
    CHECK(key.takes(9, utc(2025, 3, 29, 23)) == 3);
    CHECK(key.take(utc(2025, 3, 30, 21, 59)).retry_after == 1min);
    CHECK(key.takes(9, utc(2025, 3, 30, 22)) == 3);
}

TEST_CASE(
    "property: in every zone a window ends after now, has one end for all of its moments, and windows do not overlap")
{
    // Zones with unusual changes: midnight skipped, midnight twice, a whole day skipped, half hours.
    for (const char* name : {"America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Africa/Cairo", "Pacific/Apia",
                             "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "Asia/Gaza", "Europe/Dublin",
                             "America/Asuncion", "Africa/Casablanca", "Asia/Tehran", "UTC"}) {
        for (const auto unit : {calendar_unit::day, calendar_unit::week, calendar_unit::month}) {
            const auto r = per(unit, name);
            const bool holds = rc::check(name, [&] {
                const auto now = utc(1970, 2, 1) + microseconds{in_range<std::int64_t>(0, 2'500'000'000) * 1'000'000 +
                                                                in_range<std::int64_t>(0, 1'000'000)};
                const auto end = window_end(r, now);
                RC_ASSERT(end > now);
                RC_ASSERT(end - now <= microseconds{hours{24 * 31 + 26}});
                RC_ASSERT(window_end(r, end - 1us) == end);
                RC_ASSERT(window_end(r, end) > end);
                const auto between = now + (end - now) / in_range(1, 1000);
                RC_ASSERT(between == end || window_end(r, between) == end);
            });
            CHECK_MESSAGE(holds, std::string(name));
        }
    }
}

TEST_CASE("calendar: through fifty years every window ends at the moment computed when it began")
{
    for (const char* name : {"America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Pacific/Apia", "Africa/Cairo"}) {
        const auto r = per(calendar_unit::day, name);
        auto end = window_end(r, utc(1980, 1, 1));
        int wrong = 0;
        const auto pace = sanitized ? minutes{60 * 5} : minutes{30};
        for (auto now = utc(1980, 1, 1); now < utc(2030, 1, 1); now += pace) {
            if (now >= end) {
                wrong += window_end(r, now) <= now;
                end = window_end(r, now);
            }
            wrong += window_end(r, now) != end;
        }
        CHECK_MESSAGE(wrong == 0, std::string(name));
    }
}
