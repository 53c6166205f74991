// The value types of the configuration: what stands behind `10MiB`, `10.0.0.0/8`, `60/minute`, `${TOKEN}`.
// Each has one parser from text; a parser answers with a complaint instead of throwing.
#pragma once

#include "limiter/core/rule.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate::config {

using duration = std::chrono::microseconds;

struct byte_size
{
    std::uint64_t bytes = 0;
    static constexpr byte_size unlimited() { return {std::numeric_limits<std::uint64_t>::max()}; }
    bool operator==(const byte_size&) const = default;
};

// A string that must never be shown: printing it prints `***`.
class secret
{
public:
    secret() = default;
    explicit secret(std::string value) : value_(std::move(value)) {}
    const std::string& reveal() const { return value_; }
    bool empty() const { return value_.empty(); }
    bool operator==(const secret&) const = default;

private:
    std::string value_;
};
inline std::ostream& operator<<(std::ostream& out, const secret&) { return out << "***"; }

// An address range. IPv4 is kept as ::ffff:a.b.c.d, so that both spellings of one client are one client.
struct network
{
    std::array<std::uint8_t, 16> address{};
    unsigned prefix = 128; // bits of `address`, so 10.0.0.0/8 has 104
    std::string text;
    bool contains(const std::array<std::uint8_t, 16>& other) const;
};

// host:port, [v6]:port; the host may be a name where the field allows it.
struct host_port
{
    std::string host; // without brackets
    std::uint16_t port = 0;
    std::string text() const;
    bool operator==(const host_port&) const = default;
};

// 60/minute, 100 per 90s, 10 (in flight), unlimited, blocked
struct limit_value
{
    enum class form : std::uint8_t
    {
        rate,
        count,
        unlimited,
        blocked,
    };
    form what = form::rate;
    std::uint64_t count = 0;
    duration period{0};
    limiter::calendar_unit calendar = limiter::calendar_unit::none; // the period was said as day, week or month
    std::string text;
};

// One entry of an outcome list: 401, 5xx, 400-499, or one of the two words.
struct outcome_match
{
    int first = 0, last = 0; // a range of statuses; 0 when it is a word
    bool upstream_failure = false;
    bool timeout = false;
    std::string text;
};

// redis://user:password@host:6379/0, rediss://, unix:///path, redis+sentinel://a,b/master, redis+cluster://a,b
struct redis_url
{
    enum class topology : std::uint8_t
    {
        single,
        sentinel,
        cluster,
    };
    topology shape = topology::single;
    bool tls = false;
    std::vector<host_port> servers;
    std::string socket; // unix://
    std::string master; // sentinel's name for the primary
    unsigned database = 0;
    std::string username;
    secret password;
    std::string text; // as written, with any password as ***

    bool operator==(const redis_url&) const = default;
};

// `complaint` is empty on success; it never repeats what the operator wrote, the caller does that where it may.
template <class T>
struct parsed
{
    T value{};
    std::string complaint;
    explicit operator bool() const { return complaint.empty(); }
};

parsed<std::uint64_t> parse_count(std::string_view text);
parsed<duration> parse_duration(std::string_view text);
parsed<byte_size> parse_size(std::string_view text);
parsed<network> parse_network(std::string_view text);
parsed<host_port> parse_host_port(std::string_view text, bool name_allowed);
parsed<limit_value> parse_limit(std::string_view text);
parsed<outcome_match> parse_outcome(std::string_view text);
parsed<redis_url> parse_redis_url(std::string_view text);

// The shortest exact spelling, so that what is dumped can be loaded again: 90s, 64KiB.
std::string to_text(duration value);
std::string to_text(byte_size value);

// A text address (v4 or v6) in the 16-byte form of `network`; nothing when it is neither.
std::optional<std::array<std::uint8_t, 16>> parse_address(std::string_view text);

} // namespace headgate::config
