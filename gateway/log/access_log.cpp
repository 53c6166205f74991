#include "gateway/log/access_log.hpp"

#include "gateway/http/errors.hpp"
#include "gateway/http/text.hpp"
#include "gateway/log/log_writer.hpp"

#include <algorithm>
#include <cstring>

namespace headgate {

namespace {

using std::chrono::microseconds;

// Longer texts are cut. The default limits refuse most requests with longer ones.
constexpr std::size_t longest_method = 32, longest_host = 256, longest_path = 8192, longest_field = 1024;

void write_digits(char* at, unsigned value, unsigned digits)
{
    while (digits > 0) {
        at[--digits] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
}

// Appends the text with escapes as \xHH, as nginx writes them.
void append_combined_text(http::byte_buffer& out, std::string_view text)
{
    if (text.empty())
        return;
    if (http::is_plain_text(text)) [[likely]]
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
    if (text.empty())
        return out.append(" \"-\"");
    out.append(" \"");
    append_combined_text(out, text.substr(0, longest_field));
    out.append('"');
}

// Writes the pieces of one JSON line into room that is reserved once for all of them.
class json_line
{
public:
    json_line(http::byte_buffer& out, std::size_t texts) : out_(out), most_(texts + around_texts) { make_room(); }

    template <std::size_t N>
    void words(const char (&literal)[N])
    {
        std::memcpy(at_, literal, N - 1);
        at_ += N - 1;
    }
    void plain(std::string_view text)
    {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }
    template <std::size_t N>
    void member(const char (&opening)[N], std::string_view text)
    {
        if (text.empty())
            return;
        words(opening);
        if (http::is_plain_text(text)) [[likely]] {
            plain(text);
        } else {
            end();
            http::append_json_escaped(out_, text);
            make_room();
        }
        *at_++ = '"';
    }
    // Appends a text that needs no escaping: a name of the configuration, or a constant.
    template <std::size_t N>
    void plain_member(const char (&opening)[N], std::string_view text)
    {
        if (text.empty())
            return;
        words(opening);
        plain(text);
        *at_++ = '"';
    }
    template <std::size_t N>
    void number(const char (&opening)[N], std::uint64_t value)
    {
        words(opening);
        at_ = http::write_decimal(at_, value);
    }
    // Appends a time with three decimals; nothing for a time that is not known.
    template <std::size_t N>
    void milliseconds(const char (&opening)[N], microseconds t)
    {
        if (t < microseconds{0})
            return;
        const auto us = static_cast<std::uint64_t>(t.count());
        number(opening, us / 1000);
        *at_++ = '.';
        write_digits(at_, static_cast<unsigned>(us % 1000), 3);
        at_ += 3;
    }
    void hex(std::uint64_t value)
    {
        constexpr char digits[] = "0123456789abcdef";
        for (int i = 0; i < 16; ++i, value <<= 4)
            *at_++ = digits[value >> 60];
    }
    void end() { out_.commit(static_cast<std::size_t>(at_ - begun_)); }

private:
    static constexpr std::size_t around_texts = 768; // member names, numbers, an address, a time

    void make_room() { begun_ = at_ = out_.prepare(most_); }

    http::byte_buffer& out_;
    std::size_t most_;
    char* begun_ = nullptr;
    char* at_ = nullptr;
};

constexpr std::string_view verdict_words[] = {"none",           "passed",   "delayed", "refused",
                                              "shadow_refused", "degraded", "blocked"};

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

    std::copy_n("0000-00-00T00:00:00.000Z", rfc3339_.size(), rfc3339_.data());
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

std::string_view log_clock::rfc3339(log_entry::wall_time t)
{
    read(t);
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(t - second_);
    write_digits(rfc3339_.data() + 20, static_cast<unsigned>(rest.count()), 3);
    return {rfc3339_.data(), rfc3339_.size()};
}

std::string_view log_clock::common(log_entry::wall_time t)
{
    read(t);
    return {common_.data(), common_.size()};
}

void append_json_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock)
{
    const auto method = entry.method.substr(0, longest_method), host = entry.host.substr(0, longest_host);
    const auto path = entry.path.substr(0, longest_path);
    const auto query = entry.query.empty() ? entry.query : entry.query.substr(1, longest_path);
    json_line line(out, method.size() + host.size() + path.size() + query.size() + entry.route.size() +
                            entry.upstream.size() + entry.server.size() + entry.request_id.size() + entry.error.size() +
                            entry.token.size() + entry.rule.size() + entry.identity.size());
    line.words("{\"time\":\"");
    line.plain(clock.rfc3339(entry.began));
    line.words("\",\"client\":\"");
    line.plain(entry.client);
    line.words("\"");
    line.member(",\"method\":\"", method);
    line.member(",\"host\":\"", host);
    line.member(",\"path\":\"", path);
    line.member(",\"query\":\"", query);
    line.number(",\"status\":", entry.status);
    line.number(",\"bytes_in\":", entry.bytes_in);
    line.number(",\"bytes_out\":", entry.bytes_out);
    line.plain_member(",\"route\":\"", entry.route);
    line.plain_member(",\"upstream\":\"", entry.upstream);
    line.member(",\"server\":\"", entry.server);
    line.member(",\"request_id\":\"", entry.request_id);
    line.milliseconds(",\"duration_ms\":", entry.duration);
    line.milliseconds(",\"connect_ms\":", entry.connect);
    line.milliseconds(",\"first_byte_ms\":", entry.first_byte);
    line.plain_member(",\"error\":\"", entry.error);
    line.plain_member(",\"token\":\"", entry.token);
    line.plain_member(",\"limit\":\"", verdict_words[static_cast<std::size_t>(entry.limit)]);
    if (!entry.rule.empty()) {
        line.plain_member(",\"rule\":\"", entry.rule);
        line.member(",\"identity\":\"", entry.identity);
        line.words(",\"key\":\"");
        line.hex(entry.key_hash);
        line.number("\",\"used\":", entry.used);
        line.number(",\"quota\":", entry.quota);
    }
    line.words("}\n");
    line.end();
}

void append_combined_line(http::byte_buffer& out, const log_entry& entry, log_clock& clock)
{
    out.append(entry.client, " - - [", clock.common(entry.began), "] \"");
    if (entry.method.empty()) {
        out.append('-');
    } else {
        out.append(entry.method.substr(0, longest_method), ' '); // a token needs no escaping
        append_combined_text(out, entry.path.substr(0, longest_path));
        append_combined_text(out, entry.query.substr(0, longest_path));
        out.append(entry.minor_version == 0 ? " HTTP/1.0" : " HTTP/1.1");
    }
    out.append("\" ", http::decimal{entry.status}, ' ', http::decimal{entry.body_out});
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
        lines_.reserve(log_writer::buffer_size + 4096); // room for one line more than is handed over
    if (format_ == config::access_format::json)
        append_json_line(lines_, entry, clock_);
    else
        append_combined_line(lines_, entry, clock_);
    if (lines_.size() < log_writer::buffer_size)
        return;
    flush();
    if (lines_.size() >= log_writer::buffer_size) {
        writer_.drop(lines_.view(), "the log is written more slowly than requests arrive");
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
