#include "config/values.hpp"

#include <doctest/doctest.h>

using namespace headgate::config;
using namespace std::chrono_literals;

TEST_CASE("durations: every unit, and texts that are not durations")
{
    const std::pair<const char*, duration> good[] = {{"250us", 250us}, {"25ms", 25ms}, {"10s", 10s}, {"5m", 5min},
                                                     {"1h", 1h},       {"1d", 24h},    {"0", 0s},    {"90 s", 90s}};
    for (const auto& [text, value] : good) {
        CAPTURE(text);
        CHECK(parse_duration(text).complaint == "");
        CHECK(parse_duration(text).value == value);
    }
    for (const char* text : {"", "s", "10", "-5s", "1.5s", "10 parsecs", "99999999999999999999s", "40000d", "1e3s"}) {
        CAPTURE(text);
        CHECK(!parse_duration(text));
    }
}

TEST_CASE("sizes: powers of two and of ten, and texts that are not sizes")
{
    const std::pair<const char*, std::uint64_t> good[] = {
        {"1B", 1}, {"64KiB", 65536}, {"10MiB", 10485760}, {"1GB", 1'000'000'000}, {"2 GiB", 2147483648}};
    for (const auto& [text, value] : good) {
        CAPTURE(text);
        CHECK(parse_size(text).value.bytes == value);
    }
    for (const char* text : {"", "64", "64k", "-1B", "9999999999999GiB", "KiB"}) {
        CAPTURE(text);
        CHECK(!parse_size(text));
    }
}

TEST_CASE("to_text() returns what the parsers accept")
{
    for (const duration d : {duration(0), duration(1us), duration(1500us), duration(20ms), duration(1s), duration(60s),
                             duration(90s), duration(5min), duration(1h), duration(24h)})
        CHECK(parse_duration(to_text(d)).value == d);
    for (const std::uint64_t n : {0ULL, 1ULL, 1000ULL, 1024ULL, 65536ULL, 10485760ULL, 1ULL << 40U})
        CHECK(parse_size(to_text(byte_size{n})).value.bytes == n);
}

TEST_CASE("limits: N/unit, N per period, and a calendar unit only for a period of one day, week or month")
{
    using headgate::limiter::calendar_unit;
    struct row
    {
        const char* text;
        std::uint64_t count;
        duration period;
        calendar_unit calendar;
    };
    const row rows[] = {{"60/minute", 60, 60s, calendar_unit::none},   {"100 per 90s", 100, 90s, calendar_unit::none},
                        {"5/s", 5, 1s, calendar_unit::none},           {"1/month", 1, 720h, calendar_unit::month},
                        {"10000/day", 10000, 24h, calendar_unit::day}, {"7/week", 7, 168h, calendar_unit::week},
                        {"7 per 2d", 7, 48h, calendar_unit::none},     {"9 / hour", 9, 1h, calendar_unit::none},
                        {"3 per day", 3, 24h, calendar_unit::day},     {"3/10ms", 3, 10ms, calendar_unit::none}};
    for (const auto& r : rows) {
        CAPTURE(r.text);
        const auto got = parse_limit(r.text);
        CHECK(got.complaint == "");
        CHECK(got.value.count == r.count);
        CHECK(got.value.period == r.period);
        CHECK(got.value.calendar == r.calendar);
    }
    CHECK(parse_limit("10").value.what == limit_value::form::count);
    CHECK(parse_limit("unlimited").value.what == limit_value::form::unlimited);
    CHECK(parse_limit("blocked").value.what == limit_value::form::blocked);
    for (const char* text :
         {"", "x", "0/s", "-1/s", "5/", "5 per", "5 per 0s", "5 per 2y", "5/minutely", "1.5/s",
          "18446744073709551616/s", "9007199254740993/s", "5 per 367d", "5 per 99999999999999999999s"}) {
        CAPTURE(text);
        CHECK(!parse_limit(text));
    }
}

TEST_CASE("networks: v4 inside v6 form, and host bits refused")
{
    const auto ten = parse_network("10.0.0.0/8").value.range;
    CHECK(ten.contains(*parse_address("10.255.0.1")));
    CHECK(ten.contains(*parse_address("::ffff:10.1.2.3")));
    CHECK(!ten.contains(*parse_address("11.0.0.1")));
    CHECK(parse_network("2001:db8::/33").value.range.contains(*parse_address("2001:db8:7fff::1")));
    CHECK(!parse_network("2001:db8::/33").value.range.contains(*parse_address("2001:db8:8000::1")));
    CHECK(parse_network("0.0.0.0/0").value.range.contains(*parse_address("8.8.8.8")));
    for (const char* text : {"", "10.0.0.0/33", "10.0.0.1/8", "example.com", "::1/129", "1.2.3/8", "10.0.0.0/",
                             "10.0.0.0/ 8", "fe80::%eth0/64"}) {
        CAPTURE(text);
        CHECK(!parse_network(text));
    }
}

TEST_CASE("host:port: addresses, names where allowed, brackets for IPv6")
{
    CHECK(parse_host_port("[::1]:80", false).value == host_port{"::1", 80});
    CHECK(parse_host_port("api.internal:80", true).value.text() == "api.internal:80");
    CHECK(!parse_host_port("api.internal:80", false));
    for (const char* text : {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "[1.2.3.4]:80",
                             "a b:80", "[fe80::1%eth0]:80"}) {
        CAPTURE(text);
        CHECK(!parse_host_port(text, true));
    }
}

TEST_CASE("Redis URLs: five forms, and the password is not in their text")
{
    const auto one = parse_redis_url("rediss://app:p@ss@redis.internal/3").value;
    CHECK(one.tls);
    CHECK(one.servers == std::vector<host_port>{{"redis.internal", 6379}});
    CHECK(one.database == 3);
    CHECK(one.password.reveal() == "p@ss");
    CHECK(one.text == "rediss://app:***@redis.internal/3");

    const auto sentinel = parse_redis_url("redis+sentinel://a,b:26380/main/2").value;
    CHECK(sentinel.shape == redis_url::topology::sentinel);
    CHECK(sentinel.servers == std::vector<host_port>{{"a", 26379}, {"b", 26380}});
    CHECK(sentinel.master == "main");
    CHECK(sentinel.database == 2);

    CHECK(parse_redis_url("redis+cluster://a,[::1]:7001").value.servers.size() == 2);
    CHECK(parse_redis_url("unix:///run/redis.sock").value.socket == "/run/redis.sock");
    for (const char* text : {"", "redis://", "http://a", "redis://a,b", "redis+sentinel://a", "redis+cluster://a/1",
                             "unix://relative", "redis://a/x", "redis://a:99999"}) {
        CAPTURE(text);
        CHECK(!parse_redis_url(text));
    }
}

TEST_CASE("outcomes: a status, a class, a range, a word")
{
    CHECK(parse_outcome("5xx").value.first == 500);
    CHECK(parse_outcome("5xx").value.last == 599);
    CHECK(parse_outcome("420-429").value.last == 429);
    CHECK(parse_outcome("upstream_failure").value.upstream_failure);
    for (const char* text : {"", "6xx", "99", "600", "429-420", "abc", "4xx-5xx"}) {
        CAPTURE(text);
        CHECK(!parse_outcome(text));
    }
}
