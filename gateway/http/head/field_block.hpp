// The lines of a head or a trailer section: read strictly and resumably, and kept as views of the caller's buffer. Each
// byte is looked at once, however the bytes arrive (A16). What is refused is refused as soon as its byte is seen.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/head/field_names.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace headgate::http {

enum class parse_state : std::uint8_t
{
    need_more,
    done,
    failed
};

struct field
{
    std::string_view name;  // as received
    std::string_view value; // without surrounding white space
    field_id id = field_id::other;
    bool underscore = false; // the name has a "_" in it (B29)
    bool verbatim = false;   // the line is name, colon, one blank, value, CR LF

    // The whole line as it was received. REQUIRES: verbatim.
    std::string_view line() const noexcept
    {
        return {name.data(), static_cast<std::size_t>(value.data() + value.size() + 2 - name.data())};
    }
};

// The fields of one message in the order received. Reused: clearing keeps the capacity.
struct field_list
{
    std::vector<field> lines;
    std::uint64_t present = 0; // bit(id) of every id seen

    bool has(field_id id) const noexcept { return (present & bit(id)) != 0; }
    // Returns the first line with this id, or null. Looks at no line if the field is absent.
    const field* find(field_id id) const noexcept;
    // Returns the first line with this name, compared without case, or null. For names without an id.
    const field* find(std::string_view name) const noexcept;
    void clear() noexcept
    {
        lines.clear();
        present = 0;
    }
};

// Splits a growing run of bytes into CR LF lines. `all` must begin at the same byte each time; it may have moved.
class line_reader
{
public:
    // On `done`, `line` is the next line without its CR LF. A line that ends behind the offset `limit` fails with
    // `too_long`.
    parse_state next(std::string_view all, std::size_t limit, http_error too_long, std::string_view& line);

    std::size_t offset() const noexcept { return line_; }         // where the next line begins
    bool has_begun() const noexcept { return scanned_ != line_; } // some of that line has been looked at
    http_error error() const noexcept { return error_; }
    void restart(std::size_t offset) noexcept
    {
        line_ = scanned_ = offset;
        error_ = http_error::none;
    }

private:
    parse_state fail(http_error error)
    {
        error_ = error;
        return parse_state::failed;
    }

    std::size_t line_ = 0;
    std::size_t scanned_ = 0; // everything before it is known to be clean
    http_error error_ = http_error::none;
};

// Reads field lines up to and including the empty line, and keeps them if it is given a list.
class field_block
{
public:
    struct limits
    {
        std::size_t end;   // offset in `all` that the section may not pass
        std::size_t lines; // how many fields
        http_error too_large;
        http_error too_many;
        bool refuse_imitations; // B29, for requests
    };

    // `keep` may be null.
    parse_state feed(std::string_view all, line_reader& reader, const limits& limit, field_list* keep);
    http_error error() const noexcept { return error_; }
    std::size_t count() const noexcept { return count_; } // fields so far
    bool saw_underscore() const noexcept { return saw_underscore_; }

private:
    // Takes whole lines with short, plain names (most lines), up to the first other line.
    http_error take_plain_lines(std::string_view all, line_reader& reader, const limits& limit, field_list* keep);
    http_error take_line(std::string_view line, const limits& limit, field_list* keep);

    std::size_t count_ = 0;
    http_error error_ = http_error::none;
    bool saw_underscore_ = false;
};

// Moves views of bytes at the address `from`, whose memory may have been freed, to the same bytes at `to`.
void rebase(field_list& fields, std::uintptr_t from, const char* to) noexcept;
std::string_view rebase(std::string_view view, std::uintptr_t from, const char* to) noexcept;
inline std::uintptr_t address_of(const char* bytes) noexcept { return reinterpret_cast<std::uintptr_t>(bytes); }

} // namespace headgate::http
