// Corrects afterwards what a request was charged: all of it is given back when the request goes no further, and rules
// that charge by the outcome, or by what the answer says, are settled when it has ended. For chains in Redis this goes
// on in the background: the request does not wait for it.
#pragma once

#include "config/model.hpp"
#include "gateway/http/errors.hpp"
#include "limiter/core/time.hpp"

#include <cstddef>

namespace headgate {

class request;
struct rule_terms;

// Returns the cost that holds for a rule, or nullptr where it is one. A rule that counts requests in flight counts each
// once, whatever the route says they cost.
const config::cost_config* cost_of(const rule_terms& terms, const request& r);

// Gives back what the first `chains` chains took.
void give_back(request& r, std::size_t chains, limiter::time_point now);
// Reads again what is left in them, where that needs no waiting.
void look_again(request& r, std::size_t chains, limiter::time_point now);

// The answer's head is there: keeps what it says of the request's cost, and tells the client of that cost instead of
// the one that was charged until now.
void note_answer(request& r);
// The same for an error that the gateway answers instead.
void note_error(request& r, http::http_error error);

// The request has ended, however it did: it is no longer in flight, and rules that charge by the outcome are settled.
void settle_request(request& r);

// The request goes no further after all: as if it had never been asked for.
void give_back_request(request& r);

} // namespace headgate
