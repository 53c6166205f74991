// Changes of earlier charges in Redis: settle, give back, end, renew. The arguments of correct.lua.
#pragma once

#include "limiter/redis/take_call.hpp"

namespace headgate::limiter::redis {

// One key. What `as_charged.costs` took at `charged_at` becomes as if it had been `actual`, more or less: one cost a
// rule of as_charged.group; empty gives all back. That group may be an older version of `group`: rules go by name.
struct correction
{
    const packed_group* group = nullptr;
    std::string_view key; // as append_key writes it
    part as_charged;
    std::span<const std::uint64_t> actual;
    time_point charged_at{};
};

struct correct_options
{
    bool replace = false;
    holder who;
    time_point guess{};
    std::uint64_t reservation = 0; // not 0: ends it; when the key does not know it any more, nothing changes
};

void append_correct(std::string& out, const correction& c, const correct_options& how, call_by by = call_by::digest,
                    const script& s = correct_script());

// The argument of such a call, to be made later; and of one that confirms what `how.reservation` took.
std::string correct_argument(const correction& c, const correct_options& how);
std::string commit_argument(const packed_group& group, const correct_options& how);

// Renews the requests in flight that `how.who` has on the key.
void append_renew(std::string& out, const packed_group& group, std::string_view key, const correct_options& how,
                  call_by by = call_by::digest, const script& s = correct_script());

call_answer read_correct(std::string_view reply);

} // namespace headgate::limiter::redis
