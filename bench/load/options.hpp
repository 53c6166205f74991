// The options of the load generator, read from the command line of `bench_load`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace load {

// Which X-API-Key each request carries.
struct key_choice
{
    enum class law
    {
        none,     // no key
        one,      // one hot key
        uniform,  // any of `count`, equally likely
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
    std::size_t idle = 0;   // further connections, which make one request and then stay silent
    double seconds = 1;     // measured
    double warm = 0.2;      // before it
    double rate = 0;        // requests per second, evenly spaced; 0: closed loop
    std::uint64_t most = 0; // stop after this many requests; 0: after `seconds`
    std::string path = "/small";
    std::size_t paths = 0; // above 0: /r/0PATH … /r/(paths - 1)PATH, equally likely
    std::string method = "GET";
    std::size_t body = 0;
    std::size_t headers = 0; // beside Host and the key
    key_choice keys;
    bool close = false;       // a connection per request
    bool hold = false;        // open the idle connections, print that, and keep them until standard input ends
    std::vector<int> watched; // processes whose CPU time is read at both ends of the measured time
};

// Exits with 2 and prints the usage when the command line is wrong.
options read_options(int count, char** arguments);

} // namespace load
