#include "bench/load/client.hpp"

#include <cstdio>

namespace load {

void print(const result& said)
{
    std::printf("{\"requests\": %llu, \"seconds\": %.6f, \"bytes\": %llu, \"errors\": %llu, \"unfinished\": %llu",
                static_cast<unsigned long long>(said.requests), said.seconds,
                static_cast<unsigned long long>(said.bytes), static_cast<unsigned long long>(said.errors),
                static_cast<unsigned long long>(said.unfinished));
    const char* comma = "";
    std::printf(", \"statuses\": {");
    for (const auto& [status, count] : said.statuses) {
        std::printf("%s\"%d\": %llu", comma, status, static_cast<unsigned long long>(count));
        comma = ", ";
    }
    comma = "";
    std::printf("}, \"cpu_ns\": [");
    for (const auto spent : said.cpu_nanoseconds) {
        std::printf("%s%llu", comma, static_cast<unsigned long long>(spent));
        comma = ", ";
    }
    const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
    std::printf("], \"latency_us\": {\"count\": %llu, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"p999\": %.1f, "
                "\"max\": %.1f}",
                static_cast<unsigned long long>(said.latency.total()), us(said.latency.percentile(0.5)),
                us(said.latency.percentile(0.9)), us(said.latency.percentile(0.99)), us(said.latency.percentile(0.999)),
                us(said.latency.largest()));
    std::printf(", \"late_p99_us\": %.1f}\n", us(said.lateness.percentile(0.99)));
    std::fflush(stdout);
}

} // namespace load
