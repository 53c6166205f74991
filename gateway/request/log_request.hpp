// The log step: one line in the access log and one in every count, however the request ended.
#pragma once

namespace headgate {

class session;
struct exchange;

void log_request(session& client, exchange& x);

} // namespace headgate
