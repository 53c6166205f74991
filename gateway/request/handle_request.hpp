// The page of the request path: check, route, identify, limit, forward, log.
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/io/task.hpp"

namespace headgate {

class session;
struct exchange;

// Answers one request whose head is complete. True: the connection may carry another one.
task<bool> handle_request(session& client, exchange& x);

// Answers bytes that are not a request. The connection closes after it.
task<void> answer_broken_request(session& client, exchange& x, http::http_error error);

} // namespace headgate
