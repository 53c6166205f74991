// Keys that need no definition: route, host, method, client_ip.
#pragma once

#include <string_view>

namespace headgate::config {

bool is_builtin_key(std::string_view name);

} // namespace headgate::config
