#include "limiter/core/time_zone.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

using namespace headgate::limiter;
using namespace std::chrono;

namespace {

std::string zone_bytes(const std::string& name)
{
    std::ifstream in("/usr/share/zoneinfo/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::shared_ptr<const time_zone> zone(const std::string& name)
{
    auto parsed = time_zone::parse(zone_bytes(name));
    REQUIRE_MESSAGE(parsed, name, " must be readable: is the package tzdata installed?");
    return parsed;
}

local_seconds local(int y, unsigned m, unsigned d, int h = 0, int min = 0)
{
    return local_days{year{y} / month{m} / day{d}} + hours{h} + minutes{min};
}
sys_seconds utc(int y, unsigned m, unsigned d, int h = 0, int min = 0)
{
    return sys_days{year{y} / month{m} / day{d}} + hours{h} + minutes{min};
}

} // namespace

TEST_CASE("time zone: offsets follow daylight saving, within the table and after its end")
{
    const auto paris = zone("Europe/Paris");
    CHECK(paris->offset_at(utc(2026, 1, 15)) == hours{1});
    CHECK(paris->offset_at(utc(2026, 7, 15)) == hours{2});
    CHECK(paris->offset_at(utc(2026, 3, 29, 0, 59)) == hours{1});
    CHECK(paris->offset_at(utc(2026, 3, 29, 1, 0)) == hours{2});
    CHECK(paris->offset_at(utc(2026, 10, 25, 0, 59)) == hours{2});
    CHECK(paris->offset_at(utc(2026, 10, 25, 1, 0)) == hours{1});
    // After the table only the yearly rule of the footer applies.
    CHECK(paris->offset_at(utc(2090, 1, 15)) == hours{1});
    CHECK(paris->offset_at(utc(2090, 7, 15)) == hours{2});
    const auto sydney = zone("Australia/Sydney");
    CHECK(sydney->offset_at(utc(2090, 1, 15)) == hours{11});
    CHECK(sydney->offset_at(utc(2090, 7, 15)) == hours{10});
    CHECK(zone("Asia/Kolkata")->offset_at(utc(2026, 7, 1)) == hours{5} + minutes{30});
    CHECK(zone("UTC")->offset_at(utc(2026, 7, 1)) == hours{0});
}

TEST_CASE("time zone: local midnight maps to the right moment, also when daylight saving skips or repeats it")
{
    const auto paris = zone("Europe/Paris");
    CHECK(paris->to_utc(local(2026, 3, 29)) == utc(2026, 3, 28, 23));
    CHECK(paris->to_utc(local(2026, 3, 30)) == utc(2026, 3, 29, 22));
    CHECK(paris->to_utc(local(2026, 3, 29, 2, 30)) == utc(2026, 3, 29, 1));       // skipped: the moment of the change
    CHECK(paris->to_utc(local(2026, 10, 25, 2, 30)) == utc(2026, 10, 25, 0, 30)); // twice: the earlier moment
    // In Cuba daylight saving starts at midnight: 2026-03-08 begins at 01:00 local time.
    const auto havana = zone("America/Havana");
    CHECK(havana->to_utc(local(2026, 3, 8)) == utc(2026, 3, 8, 5));
    CHECK(time_zone{}.to_utc(local(2026, 3, 8)) == utc(2026, 3, 8));
}

TEST_CASE("time zone: invalid or truncated bytes are not parsed, wherever they are truncated")
{
    CHECK_FALSE(time_zone::parse(""));
    CHECK_FALSE(time_zone::parse("TZif"));
    CHECK_FALSE(time_zone::parse(std::string(200, '\xff')));
    const auto whole = zone_bytes("Europe/Paris");
    const auto footer = whole.rfind('\n', whole.size() - 2);
    for (std::size_t n = 0; n < footer; ++n)
        CHECK_FALSE(time_zone::parse(whole.substr(0, n)));
}
