#include "limiter/redis/scripts.hpp"

#include "limiter/redis/client/command.hpp"

#include <openssl/sha.h>

namespace headgate::limiter::redis {

// Defined in a file that cmake/embed_lua.cmake generates from lua/*.lua.
extern const std::string_view rewind_lua, take_lua, take_each_lua, correct_lua, replace_lua;

script::script(std::string_view with_text) : text(with_text)
{
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
    for (const auto byte : digest) {
        sha1 += "0123456789abcdef"[byte >> 4];
        sha1 += "0123456789abcdef"[byte & 15];
    }
}

const script& take_script()
{
    static const script s(std::string(rewind_lua).append(take_lua));
    return s;
}
const script& take_each_script()
{
    static const script s(take_each_lua);
    return s;
}
const script& correct_script()
{
    static const script s(std::string(rewind_lua).append(correct_lua));
    return s;
}
const script& replace_script()
{
    static const script s(replace_lua);
    return s;
}

void append_call(std::string& out, const script& s, call_by how, std::size_t keys, std::size_t arguments)
{
    append_count(out, 3 + keys + arguments);
    append_word(out, how == call_by::digest ? "EVALSHA" : "EVAL");
    append_word(out, how == call_by::digest ? s.sha1 : s.text);
    append_word(out, keys);
}

void append_call(std::string& out, const script& s, call_by how, std::string_view key, std::string_view argument)
{
    append_call(out, s, how, 1, 1);
    append_word(out, key);
    append_word(out, argument);
}

} // namespace headgate::limiter::redis
