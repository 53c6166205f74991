#include "gateway/http/text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace headgate::http;

TEST_CASE("text: is_plain_text finds every odd byte at every place of texts of every length")
{
    for (std::size_t size = 0; size <= 40; ++size) {
        const std::string plain(size, 'a');
        CHECK(is_plain_text(plain));
        for (std::size_t at = 0; at < size; ++at) {
            for (int byte = 0; byte < 256; ++byte) {
                auto text = plain;
                text[at] = static_cast<char>(byte);
                const bool odd = byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\';
                if (is_plain_text(text) == odd)
                    FAIL_CHECK("byte " << byte << " at " << at << " of " << size);
            }
        }
    }
}
