// Writes commands in Redis's protocol to a buffer of the caller: the commands of one turn leave in one write.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

// Appends "*n": a command of n words follows.
void append_count(std::string& out, std::size_t words);
// Appends one word of a command. It may have any bytes.
void append_word(std::string& out, std::string_view word);
void append_word(std::string& out, std::size_t number);

void append_command(std::string& out, std::initializer_list<std::string_view> words);

} // namespace headgate::limiter::redis
