// Whether text is UTF-8 that YAML allows.
#pragma once

#include <cstddef>
#include <string_view>

namespace headgate::config {

// The byte offset of the first byte that is not UTF-8 (or is a control character YAML forbids); npos when all is well.
std::size_t first_bad_byte(std::string_view text);

} // namespace headgate::config
