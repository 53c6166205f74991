// What the load is: the command line of `bench_load`, read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace load {

// Whose requests they are: the X-API-Key that each carries.
struct key_choice
{
    enum class law
    {
        none,     // no key
        one,      // one hot key
        uniform,  // any of `count`, equally likely
        zipf,     // any of `count`, the n-th as likely as 1/n
        sequence, // each of `count` in turn
    };
    law drawn = law::none;
    std::uint64_t count = 1;
    double spent_share = 0; // of requests that carry the key `spent` instead
};

struct options
{
    std::uint16_t port = 0;
    std::size_t connections = 64;
    std::size_t idle = 0;   // further connections, which make one request and are silent
    double seconds = 1;     // measured
    double warm = 0.2;      // before it
    double rate = 0;        // requests a second, at constant distances; 0: closed loop, each answer brings a request
    std::uint64_t most = 0; // end after so many requests; 0: after `seconds`
    std::string path = "/small";
    std::size_t paths = 0; // above 0: /r/0PATH … /r/(paths - 1)PATH, equally likely
    std::string method = "GET";
    std::size_t body = 0;
    std::size_t headers = 0; // beside Host and the key
    key_choice keys;
    bool close = false; // a connection a request
    bool hold = false;  // make the idle connections, say so, and hold them until standard input ends
    // Open loop: processes that together fill so many cores. Latency is then of moments in which nobody else had those.
    std::vector<int> filling;
    std::size_t cores = 0;
    std::vector<int> watched; // processes whose CPU time is read at both ends of the measured time
};

// Exits 2 with the usage when it cannot be read.
options read_options(int count, char** arguments);

} // namespace load
