// The Lua scripts, embedded at build time, and the ways to call them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

struct script
{
    explicit script(std::string_view text);

    std::string text;
    std::string sha1; // 40 hexadecimal digits, for EVALSHA
};

const script& take_script();
const script& take_each_script();
const script& correct_script();
const script& replace_script();

// How to call a script: by its digest, or with its whole text after Redis has answered NOSCRIPT.
enum class call_by
{
    digest,
    text
};

// Appends the beginning of a call. `keys` keys and `arguments` arguments must follow, each with append_word.
void append_call(std::string& out, const script& s, call_by how, std::size_t keys, std::size_t arguments);
// Appends a whole call with one key and one argument.
void append_call(std::string& out, const script& s, call_by how, std::string_view key, std::string_view argument);

} // namespace headgate::limiter::redis
