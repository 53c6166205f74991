#include "gateway/http/head/field_block.hpp"

#include "gateway/http/text.hpp"

#include <algorithm>

namespace headgate::http {

const field* field_list::find(field_id id) const noexcept
{
    if (!has(id))
        return nullptr;
    for (const auto& line : lines)
        if (line.id == id)
            return &line;
    return nullptr;
}

const field* field_list::find(std::string_view name) const noexcept
{
    for (const auto& line : lines)
        if (equals_ignoring_case(line.name, name))
            return &line;
    return nullptr;
}

parse_state line_reader::next(std::string_view all, std::size_t limit, http_error too_long, std::string_view& line)
{
    const auto end = std::min(all.size(), limit);
    const char* const stop = find_control(all.data(), all.data() + scanned_, all.data() + end);
    scanned_ = static_cast<std::size_t>(stop - all.data());
    // A CR that is the last byte received may still become a line end.
    if (scanned_ == end || (*stop == '\r' && scanned_ + 1 == end))
        return end == limit ? fail(too_long) : parse_state::need_more;
    if (*stop == '\n')
        return fail(http_error::bare_line_end);
    if (*stop != '\r')
        return fail(http_error::control_byte);
    if (stop[1] != '\n')
        return fail(http_error::bare_line_end);
    line = all.substr(line_, scanned_ - line_);
    line_ = scanned_ += 2;
    return parse_state::done;
}

namespace {

// `line` is a field line whose name, of token bytes, ends at `colon`.
inline void add_field(std::string_view line, std::size_t colon, field_id id, bool underscore, field_list& out)
{
    const auto is_text = [](char c) { return static_cast<unsigned char>(c) > ' '; };
    const auto name = line.substr(0, colon);
    auto value = line.substr(colon + 1);
    // Name, colon, one blank, value: the usual form.
    const bool verbatim = value.size() > 1 && value[0] == ' ' && is_text(value[1]) && is_text(value.back());
    if (verbatim)
        value.remove_prefix(1);
    else
        value = trim(value);
    out.lines.push_back({name, value, id, underscore, verbatim});
    out.present |= bit(id);
}

} // namespace

parse_state field_block::feed(std::string_view all, line_reader& reader, const limits& limit, field_list* keep)
{
    for (;;) {
        if (!reader.has_begun()) {
            error_ = take_plain_lines(all, reader, limit, keep);
            if (error_ != http_error::none)
                return parse_state::failed;
            const auto at = reader.offset();
            if (at + 2 <= std::min(all.size(), limit.end) && all[at] == '\r' && all[at + 1] == '\n') {
                reader.restart(at + 2);
                return parse_state::done;
            }
        }
        // Refused before the rest of the line has arrived. A folded line continues the one above, and other parsers
        // would join the two.
        if (reader.offset() < std::min(all.size(), limit.end) && is_blank(all[reader.offset()])) {
            error_ = http_error::obs_fold;
            return parse_state::failed;
        }
        std::string_view line;
        const auto state = reader.next(all, limit.end, limit.too_large, line);
        if (state != parse_state::done) {
            error_ = reader.error();
            return state;
        }
        if (line.empty())
            return parse_state::done;
        error_ = take_line(line, limit, keep);
        if (error_ != http_error::none)
            return parse_state::failed;
    }
}

http_error field_block::take_plain_lines(std::string_view all, line_reader& reader, const limits& limit,
                                         field_list* keep)
{
    const char* const end = all.data() + std::min(all.size(), limit.end);
    const char* at = all.data() + reader.offset();
    auto error = http_error::none;
    while (at < end) {
        const auto colon = plain_name_size(at, all.data() + all.size());
        if (colon == 0 || colon >= static_cast<std::size_t>(end - at))
            break;
        const char* const stop = find_control(all.data(), at + colon + 1, end);
        if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n')
            break;
        if (count_ == limit.lines) {
            error = limit.too_many;
            break;
        }
        ++count_;
        if (keep != nullptr)
            add_field({at, static_cast<std::size_t>(stop - at)}, colon, find_short_field_id(at, colon), false, *keep);
        at = stop + 2;
    }
    reader.restart(static_cast<std::size_t>(at - all.data()));
    return error;
}

http_error field_block::take_line(std::string_view line, const limits& limit, field_list* keep)
{
    // The CR after the line ends the loop, because it is not a token byte.
    const char* at = line.data();
    unsigned seen = 0;
    for (unsigned kind; ((kind = detail::classes[static_cast<unsigned char>(*at)]) & detail::token_byte) != 0; ++at)
        seen |= kind;
    const auto colon = static_cast<std::size_t>(at - line.data());
    if (colon == 0 || *at != ':')
        return http_error::bad_header;
    if (count_ == limit.lines)
        return limit.too_many;
    const auto name = line.substr(0, colon);
    const bool underscore = (seen & detail::underscore_byte) != 0;
    if (underscore && limit.refuse_imitations && imitates_protected_field(name))
        return http_error::aliased_header;
    ++count_;
    saw_underscore_ = saw_underscore_ || underscore;
    if (keep != nullptr)
        add_field(line, colon, find_field_id(name), underscore, *keep);
    return http_error::none;
}

std::string_view rebase(std::string_view view, std::uintptr_t from, const char* to) noexcept
{
    return view.empty() ? std::string_view{} : std::string_view{to + (address_of(view.data()) - from), view.size()};
}

void rebase(field_list& fields, std::uintptr_t from, const char* to) noexcept
{
    for (auto& line : fields.lines) {
        line.name = rebase(line.name, from, to);
        line.value = rebase(line.value, from, to);
    }
}

} // namespace headgate::http
