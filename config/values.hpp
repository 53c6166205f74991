// The value types of the configuration, such as `10MiB`, `10.0.0.0/8`, `60/minute`, and their parsers. A parser returns
// a complaint instead of throwing.
#pragma once

#include "config/ip_address.hpp"
#include "limiter/core/rule.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate::config {

using duration = std::chrono::microseconds;

// Longer than any that can be configured; written `unlimited`.
constexpr duration unlimited_duration = std::chrono::hours{24 * 365 * 100};

struct byte_size
{
    std::uint64_t bytes = 0;
    static constexpr byte_size unlimited() { return {std::numeric_limits<std::uint64_t>::max()}; }
    bool operator==(const byte_size&) const = default;
};

// A string that must not be shown: printing it prints `***`.
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

struct network
{
    ip_range range;
    std::string text; // as written
};

// host:port or [v6]:port. The host may be a name if the field allows it.
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
    limiter::calendar_unit calendar = limiter::calendar_unit::none; // the period was written as day, week or month
    std::string text;
};

// One entry of an outcome list: 401, 5xx, 400-499, upstream_failure or timeout.
struct outcome_match
{
    int first = 0, last = 0; // a range of statuses; 0 for a word
    bool upstream_failure = false;
    bool timeout = false;
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

// `complaint` is empty on success. It never contains the parsed text, which may be a secret.
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

// Returns the shortest exact text, which the parsers above accept: 90s, 64KiB.
std::string to_text(duration value);
std::string to_text(byte_size value);

// The syntax of texts. Each function returns what is wrong, or an empty string.
std::string check_name(std::string_view text);           // of a chain, key, store…
std::string check_header_name(std::string_view text);    // an HTTP token
std::string check_refusal_header(std::string_view text); // a header field that may be added to a refusal
std::string check_header_value(std::string_view text);
std::string check_method(std::string_view text);
std::string check_host_pattern(std::string_view text);
std::string check_host_name(std::string_view text); // without a wildcard
std::string check_path_pattern(std::string_view text);
std::string check_path_prefix(std::string_view text);
std::string check_content_type(std::string_view text);

} // namespace headgate::config
