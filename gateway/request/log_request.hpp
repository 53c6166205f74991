// The log step: one line of the access log, and the counts by route.
#pragma once

namespace headgate {

class request;

void log_request(request& r);

} // namespace headgate
