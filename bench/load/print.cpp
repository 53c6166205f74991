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

void print(const result& measured)
{
    const auto whole = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
    std::printf("{\"requests\": %llu, \"seconds\": %.6f, \"bytes\": %llu, \"errors\": %llu, \"unfinished\": %llu",
                whole(measured.requests), measured.seconds, whole(measured.bytes), whole(measured.errors),
                whole(measured.unfinished));
    const char* comma = "";
    std::printf(", \"statuses\": {");
    for (const auto& [status, count] : measured.statuses) {
        std::printf("%s\"%d\": %llu", comma, status, whole(count));
        comma = ", ";
    }
    comma = "";
    std::printf("}, \"cpu_ns\": [");
    for (const auto spent : measured.cpu_nanoseconds) {
        std::printf("%s%llu", comma, whole(spent));
        comma = ", ";
    }
    std::printf("]");
    print("latency_us", measured.latency);
    std::printf(", \"late_p99_us\": %.1f}\n", in_us(measured.lateness.percentile(0.99)));
    std::fflush(stdout);
}

} // namespace load
