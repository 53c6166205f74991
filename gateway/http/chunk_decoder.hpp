// Decodes the chunked transfer coding strictly and without I/O: takes bytes, returns views of body data (A8 to A11).
// Extensions are checked and dropped; trailers are kept separate and never become headers (A12).
#pragma once

#include "gateway/http/errors.hpp"
#include "gateway/http/head/field_block.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace headgate::http {

struct chunk_limits
{
    std::size_t extensions = 4096; // bytes in all chunks of one body
    std::size_t trailers = 65536;  // bytes of the trailer section
    std::size_t trailer_fields = 100;
};

struct chunk_step
{
    enum class what : std::uint8_t
    {
        need_more, // all input was consumed
        data,      // `data` is body; call again with the input after `consumed`
        done,      // the body and its trailers are complete; input after `consumed` belongs to the next message
        failed
    };
    what kind = what::need_more;
    std::size_t consumed = 0; // of this call's input; zero on failure
    std::string_view data;    // a view of the input
};

class chunk_decoder
{
public:
    explicit chunk_decoder(const chunk_limits& limits = {}) : limits_(limits) {}

    chunk_step next(std::string_view input);

    // REQUIRES: `failed`. For an upstream's body, translate it with as_upstream_error.
    http_error error() const noexcept { return error_; }
    // Returns views of the decoder's memory, valid until `reset`. REQUIRES: `done`.
    const field_list& trailers() const noexcept { return trailers_; }
    void reset() noexcept;

private:
    enum class state : std::uint8_t
    {
        size_first, // at least one digit
        size,
        extension_space, // between extensions
        extension_name_first,
        extension_name,
        extension_name_end, // after white space
        extension_value_first,
        extension_token,
        extension_quoted,
        extension_escape,
        extension_quoted_end,
        size_line_feed,
        data,
        data_return,
        data_line_feed,
        trailers,
        finished,
        broken
    };

    bool take_size_byte(char c);
    bool take_extension_byte(char c);
    bool end_extension_or_line(char c);
    bool fail(http_error error);
    chunk_step read_trailers(std::string_view input, std::size_t consumed);

    chunk_limits limits_;
    state state_ = state::size_first;
    http_error error_ = http_error::none;
    unsigned digits_ = 0;
    std::uint64_t left_ = 0; // of the chunk
    std::size_t extension_bytes_ = 0;
    byte_buffer trailer_bytes_;
    line_reader trailer_reader_;
    field_block trailer_block_;
    field_list trailers_;
};

// Writes the line before `size` bytes of data, for a body that we send chunked. The result views `buffer`. The data is
// followed by `chunk_data_end`, the last chunk only by `last_chunk`.
using chunk_line = std::array<char, 18>;
std::string_view format_chunk_line(std::uint64_t size, chunk_line& buffer) noexcept;
inline constexpr std::string_view chunk_data_end = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

} // namespace headgate::http
