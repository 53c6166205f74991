// The access log of one worker: one line per request into a buffer, which is handed to the writer when it is full or at
// the worker's tick. Formats are pure. Nothing here waits, reads a clock or, once warm, allocates.
#pragma once

#include "config/model.hpp"
#include "gateway/http/buffer.hpp"
#include "gateway/http/ip_address.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace headgate {

class log_writer;

// One request for the log. Everything that came from a client is not escaped yet.
struct log_entry
{
    using wall_time = std::chrono::sys_time<std::chrono::microseconds>;
    using microseconds = std::chrono::microseconds;
    enum class verdict : std::uint8_t
    {
        none, // no limit was evaluated
        passed,
        delayed, // held back by a shaping rule
        refused,
        shadow_refused, // a shadow rule would have refused
        degraded,       // admitted by counters that several keys share, or by on_outage
        blocked         // the key is blocked, by the configuration or by an operator
    };

    wall_time began{};
    std::string_view client; // its address
    std::string_view method;
    std::string_view host;
    std::string_view path;
    std::string_view query; // with its "?"
    unsigned minor_version = 1;
    std::string_view referer, agent; // only for the combined format
    unsigned status = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0; // head and body
    std::uint64_t body_out = 0;
    std::string_view route;
    std::string_view upstream;
    std::string_view server;
    std::string_view request_id;
    microseconds duration{0};
    microseconds connect{-1};    // until the request was on a connection to the upstream; negative: unknown
    microseconds first_byte{-1}; // until the upstream's answer began
    std::string_view error;      // the stable code
    std::string_view token;      // why the request's token was refused
    verdict limit = verdict::none;
    std::string_view rule;      // that decided; empty: none was evaluated
    std::string_view identity;  // that was charged
    std::uint64_t key_hash = 0; // of its key
    std::uint64_t used = 0, quota = 0;
};

// Formats points in time. The part down to the second is made once per second.
class log_clock
{
public:
    // The result is valid until the next call.
    std::string_view rfc3339(log_entry::wall_time t); // 2026-11-10T13:55:36.123Z
    std::string_view common(log_entry::wall_time t);  // 10/Nov/2026:13:55:36 +0000

private:
    void read(log_entry::wall_time t);
    std::chrono::sys_seconds second_{std::chrono::seconds{-1}};
    std::array<char, 24> rfc3339_{};
    std::array<char, 26> common_{};
};

// Each appends one line with its line end. Texts from a client are escaped and cut to a maximum length.
void append_json_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock);
void append_combined_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock);

class access_log
{
public:
    explicit access_log(log_writer& writer) : writer_(writer) {}

    void use(const config::access_log_config& config);
    bool is_on() const { return on_; }
    bool wants_client_fields() const { return format_ == config::access_format::combined; }
    bool wants_rule() const { return format_ == config::access_format::json; }
    void add(const log_entry& entry);

    // Converts a steady time to the system's time; follows steps of the system clock at the next tick.
    log_entry::wall_time to_wall(std::chrono::steady_clock::time_point t) const
    {
        return log_entry::wall_time(
            std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch() + offset_));
    }
    void tick(std::chrono::steady_clock::time_point now);
    // Hands the buffered lines to the writer, if it takes them.
    void flush();

private:
    log_writer& writer_;
    bool on_ = false;
    config::access_format format_ = config::access_format::json;
    log_clock clock_;
    http::byte_buffer lines_;
    std::chrono::nanoseconds offset_{0};
};

} // namespace headgate
