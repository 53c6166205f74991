// A known key alone in its chain is decided in one look. A chain over two keys never is: beside a second key that
// admits everything, the same requests must be told the same.
#include "limiter/memory/memory_store.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace headgate::testing;

namespace {

struct told
{
    verdict said;
    std::vector<decision> decisions;
};

class asked_store
{
public:
    asked_store(const std::vector<rule>& rules, time_point now, bool beside_another)
        : rules_(store_.define("rules", rules, now)),
          everything_(store_.define("everything", {token_bucket(1'000'000, 1us, 1'000'000'000)}, now)),
          parts_(beside_another ? 2 : 1)
    {}

    told take(std::uint64_t cost, time_point now)
    {
        const std::vector<std::uint64_t> costs(rules_->size(), cost);
        const part parts[] = {{rules_.get(), "key", costs}, {everything_.get(), "key", {}}};
        auto said = store_.take({parts, parts_}, now, room_);
        return {std::move(said), {room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(rules_->size())}};
    }

private:
    memory_store store_{1'000};
    std::shared_ptr<const rule_group> rules_, everything_;
    std::size_t parts_;
    std::array<decision, max_decisions> room_;
};

} // namespace

TEST_CASE("memory: a known key in one look is told what it is told beside another key, admitted or refused")
{
    int admitted = 0, refused = 0, shadows = 0;
    rc::check([&] {
        std::vector<rule> rules;
        const auto count = in_range(1, 4);
        for (int i = 0; i < count; ++i) {
            auto r =
                any_rule(*rc::gen::element(algorithm::token_bucket, algorithm::leaky_bucket, algorithm::fixed_window,
                                           algorithm::sliding_window, algorithm::concurrency));
            r.name = "rule" + std::to_string(i);
            r.shadow = in_range(0, 4) == 0;
            r.count_refused = in_range(0, 8) == 0;
            r.unlimited = in_range(0, 12) == 0;
            if (r.kind == algorithm::leaky_bucket && in_range(0, 2) == 0)
                r.delay_after = in_range<std::uint64_t>(0, 4);
            rules.push_back(r);
        }
        auto now = any_start();
        asked_store alone(rules, now, false), beside(rules, now, true);
        microseconds last_wait{0};
        std::uint64_t remaining = 1;
        for (const auto& s : any_schedule()) {
            now += pause_before(s, rules.front(), last_wait);
            const auto cost = cost_of(s, std::max(rules.front().count, rules.front().capacity), remaining);
            const auto one = alone.take(cost, now), two = beside.take(cost, now);
            RC_ASSERT(one.said.admitted == two.said.admitted);
            RC_ASSERT(one.said.shadow_refused == two.said.shadow_refused);
            RC_ASSERT(one.said.retry_after == two.said.retry_after);
            RC_ASSERT(one.said.delay == two.said.delay);
            RC_ASSERT(one.said.charged_at == two.said.charged_at);
            RC_ASSERT(one.decisions == two.decisions);
            last_wait = one.said.retry_after;
            remaining = one.decisions.front().remaining;
            ++(one.said.admitted ? admitted : refused);
            shadows += one.said.shadow_refused;
        }
    });
    CHECK(admitted > 100);
    CHECK(refused > 100);
    CHECK(shadows > 10);
}
