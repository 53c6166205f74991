// base64url as RFC 7515 section 2 requires: no padding, one alphabet, unused bits zero. Each string of bytes therefore
// has exactly one encoding, and no part of a token can be written in two ways.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::identity {

// Returns the decoded bytes, or nothing when the text is not the canonical encoding of any bytes.
std::optional<std::string> decode_base64url(std::string_view text);

} // namespace headgate::identity
