// Who is asking: the text of a key for one request. Pure.
//
// Every part of a key is escaped to a small alphabet and says which source it came from, and parts are separated by a
// byte that no part can contain: two different identities never meet in one counter (K9).
#pragma once

#include "gateway/http/buffer.hpp"
#include "gateway/http/errors.hpp"
#include "gateway/runtime.hpp"

namespace headgate {

struct exchange;

enum class identity
{
    known,
    skipped,  // the key is absent and its rules do not apply (missing: skip)
    refused,  // the key is absent and must not be (missing: refuse)
    malformed // duplicated, empty, too long, or not visible ASCII: never "the first one wins" (K6)
};

// Appends the key's text to `out`.
identity append_key(http::byte_buffer& out, const std::vector<key_reader>& key, const exchange& x);

} // namespace headgate
