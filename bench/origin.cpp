// bench_origin: the origin of the benchmark, and on request the load generator in the same thread.
//
// Each line on standard input is a command line of bench_load. The thread runs that load and serves the origin in turn,
// without sleeping, and writes the result as one line to standard output. Two processes on one core would wait for each
// other up to a time slice of the scheduler, and the latency at a constant rate would mostly be that. usage:
// bench_origin PORT
#include "bench/load/origin.hpp"

#include "bench/load/client.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <poll.h>
#include <sstream>
#include <stdexcept>

namespace {

load::options read_line(const std::string& line)
{
    std::istringstream words(line);
    std::vector<std::string> kept{"bench_origin"};
    for (std::string word; words >> word;)
        kept.push_back(word);
    std::vector<char*> arguments;
    for (auto& word : kept)
        arguments.push_back(word.data());
    return load::read_options(static_cast<int>(arguments.size()), arguments.data());
}

// The origin continues after a load that failed.
void run_load(load::origin& origin, const load::options& chosen)
try {
    load::client client(chosen, [&] { return origin.serve_ready(); });
    if (!client.connect_all())
        throw std::runtime_error("could not connect");
    load::print(client.run());
} catch (const std::exception& problem) {
    std::printf("{\"failed\": \"%s\"}\n", problem.what());
    std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments)
try {
    if (count != 2)
        throw std::runtime_error("usage: bench_origin PORT");
    load::origin origin(static_cast<std::uint16_t>(std::atoi(arguments[1])));
    pollfd watched[] = {{origin.descriptor(), POLLIN, 0}, {0, POLLIN, 0}};
    for (;;) {
        ::poll(watched, 2, -1);
        origin.serve_ready();
        if (watched[1].revents == 0)
            continue;
        std::string line;
        if (std::getline(std::cin, line))
            run_load(origin, read_line(line));
        else
            watched[1].fd = -1; // end of input: only the origin continues
    }
} catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_origin: %s\n", problem.what());
    return 1;
}
