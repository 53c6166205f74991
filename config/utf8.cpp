#include "config/utf8.hpp"

namespace headgate::config {

std::size_t first_bad_byte(std::string_view text)
{
    const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto follows = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned c = at(i);
        std::size_t length = 1;
        if (c < 0x80) {
            if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
                return i;
        } else if (c >= 0xC2 && c <= 0xDF && follows(i + 1)) {
            length = 2;
        } else if (c >= 0xE0 && c <= 0xEF && follows(i + 1) && follows(i + 2) && !(c == 0xE0 && at(i + 1) < 0xA0) &&
                   !(c == 0xED && at(i + 1) > 0x9F)) {
            length = 3;
        } else if (c >= 0xF0 && c <= 0xF4 && follows(i + 1) && follows(i + 2) && follows(i + 3) &&
                   !(c == 0xF0 && at(i + 1) < 0x90) && !(c == 0xF4 && at(i + 1) > 0x8F)) {
            length = 4;
        } else {
            return i;
        }
        i += length;
    }
    return std::string_view::npos;
}

} // namespace headgate::config
