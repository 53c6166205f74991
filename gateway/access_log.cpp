#include "gateway/access_log.hpp"

#include "gateway/http/errors.hpp"
#include "gateway/log_writer.hpp"

#include <algorithm>

namespace headgate {

namespace {

using std::chrono::microseconds;

// Longer than anything the default limits let through, or than anyone would read.
constexpr std::size_t longest_method = 32, longest_host = 256, longest_path = 8192, longest_field = 1024;

void write_digits(char* at, unsigned value, unsigned digits)
{
    while (digits > 0) {
        at[--digits] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
}

// One pass that the compiler turns into vector instructions: nearly every text is clean.
bool is_clean(std::string_view text)
{
    unsigned bad = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        bad |= static_cast<unsigned>(byte < 0x20) | static_cast<unsigned>(byte >= 0x7f) |
               static_cast<unsigned>(byte == '"') | static_cast<unsigned>(byte == '\\');
    }
    return bad == 0;
}

void append_json_text(http::byte_buffer& out, std::string_view text)
{
    if (is_clean(text))
        out.append(text);
    else
        http::append_json_escaped(out, text);
}

void append_member(http::byte_buffer& out, std::string_view opening, std::string_view text)
{
    if (text.empty())
        return;
    out.append(opening);
    append_json_text(out, text);
    out.append('"');
}

// \xHH, as nginx writes it.
void append_combined_text(http::byte_buffer& out, std::string_view text)
{
    if (is_clean(text))
        return out.append(text);
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\')
            out.append("\\x", digits[byte >> 4], digits[byte & 15]);
        else
            out.append(c);
    }
}

void append_quoted(http::byte_buffer& out, std::string_view text)
{
    out.append(" \"");
    append_combined_text(out, text.empty() ? std::string_view("-") : text.substr(0, longest_field));
    out.append('"');
}

// Milliseconds with three decimals.
void append_milliseconds(http::byte_buffer& out, std::string_view opening, microseconds t)
{
    if (t < microseconds{0})
        return;
    const auto us = static_cast<std::uint64_t>(t.count());
    out.append(opening);
    out.append_number(us / 1000);
    char* at = out.prepare(4);
    at[0] = '.';
    write_digits(at + 1, static_cast<unsigned>(us % 1000), 3);
    out.commit(4);
}

void append_hex(http::byte_buffer& out, std::uint64_t value)
{
    constexpr char digits[] = "0123456789abcdef";
    char* at = out.prepare(16);
    for (int i = 0; i < 16; ++i, value <<= 4)
        at[i] = digits[value >> 60];
    out.commit(16);
}

constexpr std::string_view verdict_words[] = {"none", "passed", "delayed", "refused", "shadow_refused", "degraded"};

} // namespace

void log_clock::read(log_entry::wall_time t)
{
    using namespace std::chrono;
    const auto second = floor<seconds>(t);
    if (second == second_)
        return;
    second_ = second;
    const auto day = floor<days>(second);
    const year_month_day date(day);
    const hh_mm_ss time(second - day);
    const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
    const auto month = static_cast<unsigned>(date.month());
    const auto number = [](auto x) { return static_cast<unsigned>(x.count()); };

    std::copy_n("0000-00-00T00:00:00", rfc3339_.size(), rfc3339_.data());
    write_digits(rfc3339_.data(), year, 4);
    write_digits(rfc3339_.data() + 5, month, 2);
    write_digits(rfc3339_.data() + 8, static_cast<unsigned>(date.day()), 2);
    write_digits(rfc3339_.data() + 11, number(time.hours()), 2);
    write_digits(rfc3339_.data() + 14, number(time.minutes()), 2);
    write_digits(rfc3339_.data() + 17, number(time.seconds()), 2);

    std::copy_n("00/Jan/0000:00:00:00 +0000", common_.size(), common_.data());
    write_digits(common_.data(), static_cast<unsigned>(date.day()), 2);
    std::copy_n("JanFebMarAprMayJunJulAugSepOctNovDec" + 3 * (month - 1), 3, common_.data() + 3);
    write_digits(common_.data() + 7, year, 4);
    std::copy_n(rfc3339_.data() + 11, 8, common_.data() + 12);
}

void log_clock::append_rfc3339(http::byte_buffer& out, log_entry::wall_time t)
{
    read(t);
    char* at = out.prepare(24);
    std::copy_n(rfc3339_.data(), 19, at);
    at[19] = '.';
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(t - second_);
    write_digits(at + 20, static_cast<unsigned>(rest.count()), 3);
    at[23] = 'Z';
    out.commit(24);
}

void log_clock::append_common(http::byte_buffer& out, log_entry::wall_time t)
{
    read(t);
    out.append(std::string_view(common_.data(), common_.size()));
}

void append_json_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock)
{
    http::address_text address;
    out.append("{\"time\":\"");
    clock.append_rfc3339(out, entry.began);
    out.append("\",\"client\":\"", http::format_address(entry.client, address), "\"");
    append_member(out, ",\"method\":\"", entry.method.substr(0, longest_method));
    append_member(out, ",\"host\":\"", entry.host.substr(0, longest_host));
    append_member(out, ",\"path\":\"", entry.path.substr(0, longest_path));
    if (!entry.query.empty())
        append_member(out, ",\"query\":\"", entry.query.substr(1, longest_path));
    out.append(",\"status\":");
    out.append_number(entry.status);
    out.append(",\"bytes_in\":");
    out.append_number(entry.bytes_in);
    out.append(",\"bytes_out\":");
    out.append_number(entry.bytes_out);
    append_member(out, ",\"route\":\"", entry.route);
    append_member(out, ",\"upstream\":\"", entry.upstream);
    append_member(out, ",\"server\":\"", entry.server);
    append_member(out, ",\"request_id\":\"", entry.request_id);
    append_milliseconds(out, ",\"duration_ms\":", entry.duration);
    append_milliseconds(out, ",\"connect_ms\":", entry.connect);
    append_milliseconds(out, ",\"first_byte_ms\":", entry.first_byte);
    append_member(out, ",\"error\":\"", entry.error);
    out.append(",\"limit\":\"", verdict_words[static_cast<std::size_t>(entry.limit)], "\"");
    if (!entry.rule.empty()) {
        append_member(out, ",\"rule\":\"", entry.rule);
        out.append(",\"key\":\"");
        append_hex(out, entry.key_hash);
        out.append("\",\"used\":");
        out.append_number(entry.used);
        out.append(",\"quota\":");
        out.append_number(entry.quota);
    }
    out.append("}\n");
}

void append_combined_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock)
{
    http::address_text address;
    out.append(http::format_address(entry.client, address), " - - [");
    clock.append_common(out, entry.began);
    out.append("] \"");
    if (entry.method.empty()) {
        out.append('-');
    } else {
        append_combined_text(out, entry.method.substr(0, longest_method));
        out.append(' ');
        append_combined_text(out, entry.path.substr(0, longest_path));
        append_combined_text(out, entry.query.substr(0, longest_path));
        out.append(entry.minor_version == 0 ? " HTTP/1.0" : " HTTP/1.1");
    }
    out.append("\" ");
    out.append_number(entry.status);
    out.append(' ');
    out.append_number(entry.body_out);
    append_quoted(out, entry.referer);
    append_quoted(out, entry.agent);
    out.append('\n');
}

void access_log::use(const config::access_log_config& config)
{
    on_ = config.path != "off";
    format_ = config.format;
    tick(std::chrono::steady_clock::now());
}

void access_log::add(const log_entry& entry)
{
    if (lines_.capacity() == 0)
        lines_.reserve(log_writer::buffer_size + 4096); // a line more than is handed over
    if (format_ == config::access_format::json)
        append_json_line(lines_, entry, clock_);
    else
        append_combined_line(lines_, entry, clock_);
    if (lines_.size() < log_writer::buffer_size)
        return;
    flush();
    if (lines_.size() >= log_writer::buffer_size) {
        writer_.drop(lines_.view(), "it is written more slowly than requests come");
        lines_.clear();
    }
}

void access_log::tick(std::chrono::steady_clock::time_point now)
{
    offset_ = std::chrono::system_clock::now().time_since_epoch() - now.time_since_epoch();
    flush();
}

void access_log::flush()
{
    if (!lines_.empty())
        writer_.take(lines_);
}

} // namespace headgate
