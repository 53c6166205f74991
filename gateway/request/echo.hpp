// The built-in upstream (`echo: true`): answers JSON with what it received, so that the first curl works with nothing
// else installed.
#pragma once

#include "limiter/io/asio.hpp"

namespace headgate {

class request;

task<> respond_echo(request& r);

} // namespace headgate
