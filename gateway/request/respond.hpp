// What the gateway says itself: errors, refusals, and what it tells of quotas (behaviours §5).
#pragma once

#include "gateway/request/session.hpp"
#include "limiter/core/time.hpp"

namespace headgate {

// Sends x.out, then `body`, and gets rid of a request's body that nobody wants. Whether the connection goes on. The
// answer does not wait for the body it refuses (L5); the next request does.
class sending_own
{
public:
    sending_own(session& client, exchange& x, bool keep, std::string_view body = {})
        : client_(client), x_(x), piece_{&client, x.out.view(), body, !keep}, keep_(keep)
    {}
    std::optional<bool> now();
    task<bool> later();

private:
    session& client_;
    exchange& x_;
    session::sending piece_;
    std::optional<bool> sent_;
    bool keep_;
};
using own_answer = at_once_or_later<sending_own>;

// Sends an error and decides whether the connection goes on.
own_answer answer_error(session& client, exchange& x, http::http_error error);

// 200 without a body: a question that ends here (Max-Forwards: 0).
own_answer answer_empty(session& client, exchange& x);

// Writes x.limit_fields: the quotas in the route's dialect, and what every rule said when an operator asks.
void tell_limits(exchange& x, limiter::time_point now);

// Sends the refusal of the limit step: 429 or what the configuration says, with Retry-After and the rules that refused.
own_answer answer_refusal(session& client, exchange& x);

} // namespace headgate
