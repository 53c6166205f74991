// What an error reply of Redis means. Only its first word counts: scripts append text of their own to the rest.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::limiter::redis {

enum class error_class : std::uint8_t
{
    no_script,     // NOSCRIPT: send the text
    read_only,     // READONLY: this is a replica
    out_of_memory, // OOM
    loading,       // LOADING
    busy,          // BUSY: a script runs and does not end
    master_down,   // MASTERDOWN
    cluster_down,  // CLUSTERDOWN
    moved,         // MOVED
    ask,           // ASK
    try_again,     // TRYAGAIN
    cross_slot,    // CROSSSLOT: keys of one call are on several nodes
    no_replicas,   // NOREPLICAS
    misconfigured, // MISCONF: it cannot write to its disk
    unauthorized,  // NOAUTH, WRONGPASS, NOPERM
    wrong_type,    // WRONGTYPE
    general,       // ERR
    other,
};

// Returns the class of an error reply, with or without its leading '-'.
error_class classify(std::string_view message);
std::string_view name_of(error_class c);

} // namespace headgate::limiter::redis
