// What the access log says about a request's limits: the verdict, and the rule that decided. No I/O.
#pragma once

#include "gateway/log/access_log.hpp"

namespace headgate {

class request;

// Sets the verdict and, when `with_rule`, the rule that decided and whose counter it was. The entry views the request's
// memory.
void add_limits(log_entry& entry, const request& r, bool with_rule);

} // namespace headgate
