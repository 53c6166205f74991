// The text of a key for one request: which counters it is charged to.
//
// Every part of a key is escaped to a small alphabet and begins with the tag of its source, and parts are separated by
// a byte that no part can contain: two different identities never meet in one counter (K9).
#pragma once

#include "gateway/compiled/chain.hpp"
#include "gateway/http/buffer.hpp"

#include <span>
#include <string_view>

namespace headgate {

class request;

enum class key_state
{
    known,
    skipped,  // the key is absent and its rules do not apply (missing: skip)
    invalid,  // its token is not valid, and must be
    refused,  // the key is absent and must not be (missing: refuse)
    unknown,  // likewise, and the API key that was presented is in no table
    malformed // duplicated, empty, too long, or with bytes it must not have: never "the first one wins" (K6)
};

// Appends the key's text to `out`.
key_state append_key(http::byte_buffer& out, std::span<const compiled_key> key, request& r);

// The number of the plan that the request is on, by what it says itself.
std::size_t read_plan(request& r);

// Which of a part's rules hold for the request: by its plan, and by the text of its key.
const compiled_rules& choose_rules(const chain_part& part, std::string_view key, request& r);

} // namespace headgate
