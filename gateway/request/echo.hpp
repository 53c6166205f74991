// The built-in upstream (`echo: true`): answers JSON with what it received, so that the first curl works with nothing
// else installed.
#pragma once

#include "limiter/io/task.hpp"

namespace headgate {

class session;
struct exchange;

task<bool> answer_with_echo(session& client, exchange& x);

} // namespace headgate
