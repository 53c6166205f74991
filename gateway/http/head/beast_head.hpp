// Boost.Beast's parser over one complete head that the scan has admitted. It only gives views of the bytes; framing.hpp
// decides what they mean.
#pragma once

#include "gateway/http/head/message_head.hpp"

#include <string_view>

namespace headgate::http {

// Parses exactly the head that lies at `where` in `received` and replaces the fields of `head`. Returns whether Beast
// took it whole and reported what the scan has seen: the start line that is in `head`, and fields that are the lines
// between there and the end, each once and in order. When it returns false, the fields of `head` are not to be used.
bool parse_with_beast(std::string_view received, const head_extent& where, request_head& head);
bool parse_with_beast(std::string_view received, const head_extent& where, response_head& head);

} // namespace headgate::http
