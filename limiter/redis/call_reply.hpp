// What the replies of take.lua, take_each.lua and correct.lua have in common.
#pragma once

#include "limiter/redis/numbers.hpp"
#include "limiter/redis/take_call.hpp"

namespace headgate::limiter::redis {

enum class reply_status : unsigned
{
    refused,
    done,
    boundaries,
    other_rules,
    foreign,
    lapsed,
    unusual,
};

// Reads a reply of a script that changed nothing, with the reason.
inline call_answer read_unchanged(reply_status status, time_point now, number_reader& from, std::size_t parts)
{
    call_answer out;
    out.now = now;
    out.part = from.byte();
    if (from.failed() || out.part >= parts)
        return out;
    const bool tells_value = status == reply_status::other_rules || status == reply_status::lapsed;
    if (tells_value && from.rest().size() >= header_numbers * number_bytes) {
        out.value = from.rest();
        out.status = status == reply_status::lapsed ? call_status::lapsed : call_status::other_rules;
    } else if (status == reply_status::boundaries && from.at_end()) {
        out.status = call_status::boundaries;
    } else if (status == reply_status::foreign && from.at_end()) {
        out.status = call_status::foreign;
    } else if (status == reply_status::unusual && from.at_end()) {
        out.status = call_status::unusual;
    }
    return out;
}

} // namespace headgate::limiter::redis
