// The limit step: asks every chain of the route, in order. A refusal in a later chain gives back what an earlier one
// took.
#pragma once

#include "gateway/http/errors.hpp"
#include "limiter/core/decision.hpp"
#include "limiter/core/rule.hpp"
#include "limiter/io/task.hpp"

#include <optional>
#include <string_view>

namespace headgate {

class session;
struct exchange;

// Fills x.limit and x.limit_fields. An error: the request cannot be judged, because its key or its cost is malformed or
// missing. What chains before that one have taken stays taken: a guard by address counts those who guess keys (K8).
struct limiting
{
    session& client;
    exchange& x;
    std::optional<http::http_error> now(); // every chain whose counters are in this process
    task<http::http_error> later();        // the others, in Redis

private:
    static task<http::http_error> ask_shared(session& client, exchange& x);
};
inline auto limit_request(session& client, exchange& x) { return at_once_or_later(limiting{client, x}); }

// Tells Redis that the request is still under way, where that is counted.
void renew_slots(session& client, const exchange& x);

// The answer's head is there: remembers what it says of its cost.
void note_answer(exchange& x);

// The request has ended, however it did: it is no longer in flight, and rules that charge by the outcome know it.
void settle_request(session& client, exchange& x);

// The request goes no further after all: as if it had never been asked for.
void give_back_request(session& client, exchange& x);

// The rule that says most about what became of the request, with what it said and of whom; null when none was asked.
const limiter::rule* find_deciding_rule(const exchange& x, const limiter::decision*& said, std::string_view& key);

} // namespace headgate
