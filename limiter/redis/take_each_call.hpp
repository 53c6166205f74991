// One call for many keys of a usual chain: writes the arguments of take_each.lua. No I/O, and no allocation
// once the buffers have grown.
#pragma once

#include "limiter/redis/take_call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::limiter::redis {

// Returns whether take_each.lua may decide the chain. It answers `unusual` for a value that take.lua has to decide.
bool is_usual(std::span<const chain_part> parts, const take_options& how);

// Writes the one argument of a call: it is the same for all keys. `key` and its text do not matter.
void write_each_argument(std::string& out, const chain_part& any, const take_options& how);
// Appends a whole call: `keys` keys, which append_word has written to `key_words`, and the argument.
void append_take_each(std::string& out, std::size_t keys, std::string_view key_words, std::string_view argument,
                      call_by by = call_by::digest, const script& s = take_each_script());

// Each item of its reply is for read_take, like take.lua's reply for that key: `done`, or the reason to call take.lua:
// `boundaries` or `unusual`.

} // namespace headgate::limiter::redis
