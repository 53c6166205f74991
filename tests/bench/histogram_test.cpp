// The histogram of the load generator: every percentile to 0.8 %, over the whole range.
#include "bench/load/histogram.hpp"

TEST_CASE("histogram: every percentile is within a 128th of the true one")
{
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> spread(12, 2.5); // around 160 µs, from some ns to seconds
    load::histogram seen;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 100'000; ++i) {
        values.push_back(static_cast<std::uint64_t>(spread(random)));
        seen.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double share : {0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
        const auto rank =
            std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
        const auto truth = static_cast<double>(values[rank - 1]);
        CAPTURE(share);
        CHECK(static_cast<double>(seen.percentile(share)) >= truth);
        CHECK(static_cast<double>(seen.percentile(share)) <= truth * (1 + 1.0 / 128) + 1);
    }
    CHECK(seen.total() == values.size());
    CHECK(seen.largest() == values.back());
}

TEST_CASE("histogram: a value beyond its range is counted, and is the largest")
{
    load::histogram seen;
    seen.add(1);
    seen.add(std::uint64_t{1} << 50);
    CHECK(seen.percentile(0.5) == 1);
    CHECK(seen.percentile(1.0) <= std::uint64_t{1} << 50);
    CHECK(seen.largest() == std::uint64_t{1} << 50);
}
