// base64url as RFC 7515 section 2 wants it: no padding, one alphabet, unused bits zero. Each string of bytes therefore
// has exactly one spelling, and no part of a token can be written differently and still mean the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::identity {

std::optional<std::string> decode_base64url(std::string_view text);

} // namespace headgate::identity
