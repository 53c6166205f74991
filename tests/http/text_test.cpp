#include "gateway/http/text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace headgate::http;

TEST_CASE("text: is_plain_text finds every byte that needs an escape at every position of texts of every length")
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

TEST_CASE("text: write_decimal agrees with std::to_string at every number of digits")
{
    const auto written = [](std::uint64_t value) {
        char text[20];
        return std::string(text, write_decimal(text, value));
    };
    for (std::uint64_t value = 0; value < 100'000; ++value)
        REQUIRE(written(value) == std::to_string(value));
    for (std::uint64_t power = 10; power < 1'000'000'000'000'000'000; power *= 10) {
        for (const auto value : {power - 1, power, power + 1, power * 5, power * 10 - 1})
            CHECK(written(value) == std::to_string(value));
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
        const auto power = std::uint64_t{1} << bit;
        for (const auto value : {power - 1, power, power + 1})
            CHECK(written(value) == std::to_string(value));
    }
    CHECK(written(UINT64_MAX) == "18446744073709551615");
    CHECK(written(UINT64_MAX - 1) == "18446744073709551614");
}
