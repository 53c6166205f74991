// The head of an upstream's answer, interim or final, in the bytes that have arrived. No I/O.
#pragma once

#include "gateway/http/errors.hpp"

#include <optional>

namespace headgate {

class request;

// Reads it into the request's memory. Returns nothing while the bytes are not enough for a head.
std::optional<http::http_error> parse_answer_head(request& r);

// Drops the interim head that was read, so that the next one can be.
void drop_interim_head(request& r);

// Returns whether the upstream's 101 answers this client's handshake and no other: all that follows passes unseen (C7).
bool accepts_handshake(const request& r);

} // namespace headgate
