// Writes the chunked transfer coding.
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/chunk_decoder.hpp"

#include <string_view>

namespace headgate::http {

// Appends one chunk; nothing for no data, which would be the last chunk.
inline void append_chunk(byte_buffer& out, std::string_view data)
{
    if (data.empty())
        return;
    chunk_line line;
    out.append(format_chunk_line(data.size(), line), data, chunk_data_end);
}

} // namespace headgate::http
