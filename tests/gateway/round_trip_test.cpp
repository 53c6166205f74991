// A client that waits exactly Retry-After is admitted. Random chains, costs and schedules through the real gateway; the
// test advances its clock.
#include "tests/gateway/support.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace headgate::tests;

namespace {

class random_chain
{
public:
    explicit random_chain(unsigned seed) : random_(seed) {}

    unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }

    std::string rule(int number)
    {
        static const std::vector<std::string> kinds{"token_bucket", "leaky_bucket",   "gcra",
                                                    "fixed_window", "sliding_window", "sliding_log"};
        static const std::vector<std::string> units{"second", "minute", "hour", "day", "week", "month"};
        const auto& kind = kinds[below(static_cast<unsigned>(kinds.size()))];
        const auto limit = 3 + below(20);
        auto text = "      - { name: r" + std::to_string(number) + ", key: " + (below(2) ? "user" : "[route]") +
                    ", algorithm: " + kind + ", cost: { header: X-Cost, max: 3 }, limit: " + std::to_string(limit);
        text += below(3) == 0 ? " per " + std::to_string(1 + below(200)) + "s"
                              : "/" + units[below(static_cast<unsigned>(units.size()))];
        if (kind == "fixed_window" && below(2) == 0)
            text += ", align: first";
        if (kind == "leaky_bucket" || kind == "gcra") // otherwise a cost of 3 never fits
            text += ", burst: " + std::to_string(3 + below(9));
        if (below(5) == 0)
            text += ", mode: shadow";
        if (below(5) == 0)
            text += ", count_refused: true";
        return text + " }\n";
    }

private:
    std::mt19937 random_;
};

} // namespace

TEST_CASE("round trip: a client that waits exactly Retry-After is admitted, with any chain")
{
    recorder up;
    int refusals = 0, long_waits = 0;
    for (unsigned seed = 0; seed < 60; ++seed) {
        random_chain random(seed);
        std::string rules;
        for (int i = 0, n = 1 + static_cast<int>(random.below(4)); i < n; ++i)
            rules += random.rule(i);
        CAPTURE(seed);
        CAPTURE(rules);
        running_gateway gateway(running_gateway::in_front_of(
            up.server(), "keys:\n  user: [ { header: X-User } ]\nchains:\n  api:\n    store: local\n    rules:\n" +
                             rules + "routes:\n  - { name: all, upstream: up, chains: [ api ] }\n"));
        auto client = gateway.connect();
        for (int step = 0; step < 60; ++step) {
            const auto ask = [&, user = random.below(2), cost = 1 + random.below(3)] {
                client.send("GET / HTTP/1.1\r\nHost: a\r\nX-User: u" + std::to_string(user) +
                            "\r\nX-Cost: " + std::to_string(cost) + "\r\n\r\n");
                return client.read_response();
            };
            const auto answer = ask();
            if (status_of(answer) == 429) {
                ++refusals;
                const auto wait = std::stoll(field_of(answer, "Retry-After"));
                REQUIRE(wait >= 1);
                long_waits += wait > 3600;
                gateway.app().clock().advance(std::chrono::seconds{wait});
                REQUIRE(status_of(ask()) == 200);
            } else {
                REQUIRE(status_of(answer) == 200);
                if (random.below(4) == 0)
                    gateway.app().clock().advance(std::chrono::milliseconds{random.below(5000)});
            }
        }
    }
    CHECK(refusals > 500);
    CHECK(long_waits > 50);
}
