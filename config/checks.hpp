// Shapes of text that a field asks for. Each answers with a complaint, or with nothing when the text will do.
#pragma once

#include <string>
#include <string_view>

namespace headgate::config {

std::string check_name(std::string_view text);           // of a chain, key, store…
std::string check_header_name(std::string_view text);    // an HTTP token
std::string check_refusal_header(std::string_view text); // one that an operator may add to a refusal
std::string check_header_value(std::string_view text);
std::string check_method(std::string_view text);
std::string check_host_pattern(std::string_view text);
std::string check_path_pattern(std::string_view text);
std::string check_path_prefix(std::string_view text);
std::string check_content_type(std::string_view text);

} // namespace headgate::config
