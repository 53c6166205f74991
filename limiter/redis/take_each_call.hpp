// A call for many keys of a usual chain at once: the arguments of take_each.lua. No I/O, and no allocation
// once the buffers have grown.
#pragma once

#include "limiter/redis/take_call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

// Whether take_each.lua can decide the chain. When it finds that it cannot, it says so, and take.lua can.
bool is_usual(std::span<const chain_part> parts, const take_options& how);

// Writes the one argument of a call: it is the same for all keys. `key` and its text do not matter.
void write_each_argument(std::string& out, const chain_part& any, const take_options& how);
// A whole call: `keys` of them, as append_word writes them one after the other, and the argument.
void append_take_each(std::string& out, std::size_t keys, std::string_view key_words, std::string_view argument,
                      call_by by = call_by::digest, const script& s = take_each_script());

// Each item of its reply is for read_take, like a reply of take.lua about that key alone: `done`, or why take.lua must
// be called after all: `boundaries` or `unusual`.

} // namespace headgate::limiter::redis
