// bench_load: HTTP/1.1 load on one port of this machine, its result one JSON object on standard output.
#include "bench/load/client.hpp"

#include <cstdio>
#include <exception>
#include <unistd.h>

int main(int count, char** arguments)
try {
    const auto chosen = load::read_options(count, arguments);
    load::client client(chosen);
    if (!client.connect_all()) {
        std::fputs("bench_load: could not connect\n", stderr);
        return 1;
    }
    if (chosen.hold) {
        std::puts("{\"held\": true}");
        std::fflush(stdout);
        for (char byte; ::read(0, &byte, 1) > 0;) {
        }
        return 0;
    }
    load::print(client.run());
    return 0;
} catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_load: %s\n", problem.what());
    return 1;
}
