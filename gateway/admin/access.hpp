// Who may read the admin listener. Pure.
#pragma once

#include "config/model.hpp"

#include <string_view>

namespace headgate {

enum class admin_access
{
    granted,
    needs_token, // a token is configured, and the request has none or another
    wrong_host   // no token is configured, and Host is a name that a web page could have chosen (DNS rebinding)
};

// `host` and `authorization` are the values of these fields, empty when absent or repeated.
admin_access decide_access(const config::admin_config& config, std::string_view host, std::string_view authorization);

} // namespace headgate
