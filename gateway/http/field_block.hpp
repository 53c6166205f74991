// The lines of a head or a trailer section, read strictly and resumably into views of the caller's buffer. Each byte is
// looked at once, however the bytes arrive (A16). What is refused is refused as soon as its byte is seen.
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/field_names.hpp"

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
    bool verbatim = false;   // the line was just name, colon, one blank, value, CR LF

    // Then: all of that, as it was received.
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
    // The first line with this id, or null. Costs nothing when the field is absent.
    const field* find(field_id id) const noexcept;
    // The first line with this name, compared without case; for names without an id.
    const field* find(std::string_view name) const noexcept;
    void clear() noexcept
    {
        lines.clear();
        present = 0;
    }
};

// Cuts CR LF lines out of a growing run of bytes. `all` must begin at the same byte each time; it may have moved.
class line_reader
{
public:
    // On `done` `line` is the next line without its CR LF. `limit` is the offset no line end may pass: `too_long` then.
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

// Reads field lines up to and including the empty line.
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

    parse_state feed(std::string_view all, line_reader& reader, const limits& limit, field_list& out);
    http_error error() const noexcept { return error_; }

private:
    // Whole lines with short, plain names, as nearly all are; up to the first that is not one.
    http_error add_plain_lines(std::string_view all, line_reader& reader, const limits& limit, field_list& out);
    static http_error add_line(std::string_view line, const limits& limit, field_list& out);

    http_error error_ = http_error::none;
};

// Points views that were taken from the bytes at the address `from`, which may be gone, into the same bytes at `to`.
void rebase(field_list& fields, std::uintptr_t from, const char* to) noexcept;
std::string_view rebase(std::string_view view, std::uintptr_t from, const char* to) noexcept;
inline std::uintptr_t address_of(const char* bytes) noexcept { return reinterpret_cast<std::uintptr_t>(bytes); }

} // namespace headgate::http
