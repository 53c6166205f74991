#include "bench/load/client.hpp"

#include <cstdio>

namespace load {

namespace {

double in_us(auto nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

void print(const char* name, const histogram& of)
{
    std::printf(
        ", \"%s\": {\"count\": %llu, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f}", name,
        static_cast<unsigned long long>(of.total()), in_us(of.percentile(0.5)), in_us(of.percentile(0.9)),
        in_us(of.percentile(0.99)), in_us(of.percentile(0.999)), in_us(of.largest()));
}

} // namespace

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
    std::printf("]");
    print("latency_us", said.took.waited);
    print("until_read_us", said.took.until_read);
    if (said.calm) {
        print("calm_latency_us", said.calm->took.waited);
        print("calm_until_read_us", said.calm->took.until_read);
        std::printf(", \"calm\": %.4f", said.calm->share);
    }
    std::printf(", \"unstamped\": %llu, \"late_p99_us\": %.1f}\n", static_cast<unsigned long long>(said.unstamped),
                in_us(said.lateness.percentile(0.99)));
    std::fflush(stdout);
}

} // namespace load
