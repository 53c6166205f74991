#include "limiter/redis/client/command.hpp"

#include <charconv>

namespace headgate::limiter::redis {

namespace {

void append_line(std::string& out, char mark, std::size_t n)
{
    char digits[24];
    digits[0] = mark;
    char* end = std::to_chars(digits + 1, digits + 22, n).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(digits, static_cast<std::size_t>(end - digits));
}

} // namespace

void append_count(std::string& out, std::size_t words) { append_line(out, '*', words); }

void append_word(std::string& out, std::string_view word)
{
    append_line(out, '$', word.size());
    out.append(word);
    out.append("\r\n", 2);
}

void append_word(std::string& out, std::size_t number)
{
    char digits[20];
    const auto* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    append_word(out, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

void append_command(std::string& out, std::initializer_list<std::string_view> words)
{
    append_count(out, words.size());
    for (const auto word : words)
        append_word(out, word);
}

} // namespace headgate::limiter::redis
