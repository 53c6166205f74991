#include "gateway/http/chunk_decoder.hpp"

#include "gateway/http/text.hpp"

#include <algorithm>
#include <charconv>

namespace headgate::http {

chunk_step chunk_decoder::next(std::string_view input)
{
    using enum chunk_step::what;
    std::size_t at = 0;
    while (at < input.size()) {
        const char c = input[at];
        bool good = true;
        switch (state_) {
        case state::size_first:
        case state::size:
            good = take_size_byte(c);
            break;
        case state::size_line_feed:
            if (c != '\n')
                good = fail(http_error::bad_chunk);
            else
                state_ = left_ == 0 ? state::trailers : state::data;
            break;
        case state::data: {
            const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
            left_ -= count;
            if (left_ == 0)
                state_ = state::data_return;
            return {data, at + count, input.substr(at, count)};
        }
        case state::data_return:
            good = c == '\r' || fail(http_error::bad_chunk);
            state_ = good ? state::data_line_feed : state_;
            break;
        case state::data_line_feed:
            good = c == '\n' || fail(http_error::bad_chunk);
            state_ = good ? state::size_first : state_;
            break;
        case state::trailers:
            return read_trailers(input, at);
        case state::finished:
            return {done, at, {}};
        case state::broken:
            return {failed, 0, {}};
        default:
            good = take_extension_byte(c);
            break;
        }
        if (!good)
            return {failed, 0, {}};
        ++at;
    }
    return {state_ == state::finished ? done : state_ == state::broken ? failed : need_more, at, {}};
}

bool chunk_decoder::take_size_byte(char c)
{
    const int digit = hex_value(c);
    if (digit >= 0) {
        if (state_ == state::size_first) {
            state_ = state::size;
            left_ = 0;
            digits_ = 0;
        }
        left_ = left_ << 4 | static_cast<unsigned>(digit);
        // Sixteen digits fit the word; a size that does not fit a signed word is refused.
        return (++digits_ <= 16 && left_ <= INT64_MAX) || fail(http_error::bad_chunk);
    }
    return state_ == state::size ? end_extension_or_line(c) : fail(http_error::bad_chunk);
}

// After a size, an extension's name or its value: the next extension, with white space before it, or the end of the
// line.
bool chunk_decoder::end_extension_or_line(char c)
{
    if (c == '\r')
        state_ = state::size_line_feed;
    else if (c == ';')
        state_ = state::extension_name_first;
    else if (is_blank(c))
        state_ = state::extension_space;
    else
        return fail(http_error::bad_chunk);
    return true;
}

// Reads *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ) as RFC 9112 §7.1.1 has it: white space at the
// end of the line is not part of it.
bool chunk_decoder::take_extension_byte(char c)
{
    if (++extension_bytes_ > limits_.extensions)
        return fail(http_error::chunk_extensions_too_large);
    switch (state_) {
    case state::extension_space:
        if (c == ';')
            state_ = state::extension_name_first;
        return c == ';' || is_blank(c) || fail(http_error::bad_chunk);
    case state::extension_name_first:
        if (is_token_byte(c))
            state_ = state::extension_name;
        return is_token_byte(c) || is_blank(c) || fail(http_error::bad_chunk);
    case state::extension_name:
        if (is_blank(c))
            state_ = state::extension_name_end;
        else if (c == '=')
            state_ = state::extension_value_first;
        else
            return is_token_byte(c) || end_extension_or_line(c);
        return true;
    case state::extension_name_end:
        if (c == '=')
            state_ = state::extension_value_first;
        else if (c == ';')
            state_ = state::extension_name_first;
        return c == '=' || c == ';' || is_blank(c) || fail(http_error::bad_chunk);
    case state::extension_value_first:
        if (is_blank(c))
            return true;
        if (c != '"' && !is_token_byte(c))
            return fail(http_error::bad_chunk);
        state_ = c == '"' ? state::extension_quoted : state::extension_token;
        return true;
    case state::extension_token:
        return is_token_byte(c) || end_extension_or_line(c);
    case state::extension_quoted:
    case state::extension_escape:
        // CR, LF and NUL are not allowed, escaped or not (A10).
        if (!is_class(c, detail::text_byte))
            return fail(http_error::bad_chunk);
        if (state_ == state::extension_escape)
            state_ = state::extension_quoted;
        else if (c == '\\')
            state_ = state::extension_escape;
        else if (c == '"')
            state_ = state::extension_quoted_end;
        return true;
    default:
        return end_extension_or_line(c);
    }
}

chunk_step chunk_decoder::read_trailers(std::string_view input, std::size_t consumed)
{
    using enum chunk_step::what;
    input.remove_prefix(consumed);
    // The usual end of a body, without trailers: nothing is copied.
    if (trailer_bytes_.empty() && input.starts_with("\r\n")) {
        state_ = state::finished;
        return {done, consumed + 2, {}};
    }
    const auto before = trailer_bytes_.size();
    const auto moved_from = address_of(trailer_bytes_.data());
    // One byte above the limit is enough to detect that it is exceeded.
    const auto taken = input.substr(0, limits_.trailers + 1 - before);
    trailer_bytes_.append(taken);
    rebase(trailers_, moved_from, trailer_bytes_.data());
    const field_block::limits limits{.end = limits_.trailers,
                                     .lines = limits_.trailer_fields,
                                     .too_large = http_error::trailers_too_large,
                                     .too_many = http_error::trailers_too_large,
                                     .refuse_imitations = false};
    switch (trailer_block_.feed(trailer_bytes_.view(), trailer_reader_, limits, &trailers_)) {
    case parse_state::done:
        state_ = state::finished;
        return {done, consumed + trailer_reader_.offset() - before, {}};
    case parse_state::need_more:
        return {need_more, consumed + taken.size(), {}};
    default:
        fail(trailer_block_.error() == http_error::trailers_too_large ? http_error::trailers_too_large
                                                                      : http_error::bad_chunk);
        return {failed, 0, {}};
    }
}

bool chunk_decoder::fail(http_error error)
{
    error_ = error;
    state_ = state::broken;
    return false;
}

void chunk_decoder::reset() noexcept
{
    state_ = state::size_first;
    error_ = http_error::none;
    left_ = 0;
    extension_bytes_ = 0;
    trailer_bytes_.clear();
    trailer_reader_.restart(0);
    trailer_block_ = {};
    trailers_.clear();
}

std::string_view format_chunk_line(std::uint64_t size, chunk_line& buffer) noexcept
{
    char* at = std::to_chars(buffer.data(), buffer.data() + 16, size, 16).ptr;
    *at++ = '\r';
    *at++ = '\n';
    return {buffer.data(), static_cast<std::size_t>(at - buffer.data())};
}

} // namespace headgate::http
