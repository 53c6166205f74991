// The last step: one exchange with the route's upstream. True: the client's connection may carry another request.
#pragma once

#include "limiter/io/task.hpp"

namespace headgate {

class session;
struct exchange;

task<bool> forward(session& client, exchange& x);

} // namespace headgate
