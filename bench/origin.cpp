// bench_origin: the origin of the benchmark, and on demand the load beside it.
//
// A line on standard input is a command line of bench_load: that load is run by the thread that serves the origin, both
// in turn and without ever sleeping, and its result is a line on standard output. Where a process of its own makes the
// load on the same core, one of the two waits whenever the other runs, up to a time slice of the scheduler, and the
// latency that is measured is mostly that. usage: bench_origin PORT
#include "bench/load/origin.hpp"

#include "bench/load/client.hpp"
#include "bench/load/stamps.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace {

using namespace std::chrono_literals;

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

// The origin outlives a load that fails: others need it.
void run_beside(load::origin& serving, const load::options& chosen)
try {
    load::client client(chosen, [&] { return serving.serve_ready() > 0; });
    const auto began = load::clock::now();
    if (!client.connect_all())
        throw std::runtime_error("could not connect");
    if (load::clock::now() - began > 300ms)
        std::this_thread::sleep_for(
            150ms); // the kernel does not let a real-time process have more than 0.95 s at a time
    load::print(client.run());
} catch (const std::exception& problem) {
    std::printf("{\"failed\": \"%s\"}\n", problem.what());
    std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments)
try {
    if (count != 2)
        return 2;
    load::keep_stamping();
    load::origin serving(static_cast<std::uint16_t>(std::atoi(arguments[1])));
    pollfd watched[] = {{serving.descriptor(), POLLIN, 0}, {0, POLLIN, 0}};
    for (;;) {
        ::poll(watched, 2, -1);
        serving.serve_ready();
        if (watched[1].revents == 0)
            continue;
        std::string line;
        if (std::getline(std::cin, line))
            run_beside(serving, read_line(line));
        else
            watched[1].fd = -1; // nobody will ask: an origin and nothing more
    }
} catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_origin: %s\n", problem.what());
    return 1;
}
