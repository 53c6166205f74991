// A chain with one known key takes the fast path of the store. A chain over two keys never does: with a second key that
// admits everything, the same requests must get the same decisions.
#include "limiter/memory/memory_store.hpp"
#include "tests/support/schedule.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace headgate::testing;

namespace {

struct outcome
{
    verdict result;
    std::vector<decision> decisions;
};

class store_with_rules
{
public:
    store_with_rules(const std::vector<rule>& rules, time_point now, bool with_second_key)
        : rules_(store_.define("rules", rules, now)),
          everything_(store_.define("everything", {token_bucket(1'000'000, 1us, 1'000'000'000)}, now)),
          parts_(with_second_key ? 2 : 1)
    {}

    outcome take(std::uint64_t cost, time_point now)
    {
        const std::vector<std::uint64_t> costs(rules_->size(), cost);
        const part parts[] = {{rules_.get(), "key", costs}, {everything_.get(), "key", {}}};
        auto result = store_.take({parts, parts_}, now, room_);
        return {std::move(result), {room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(rules_->size())}};
    }

private:
    memory_store store_{1'000};
    std::shared_ptr<const rule_group> rules_, everything_;
    std::size_t parts_;
    std::array<decision, max_decisions> room_;
};

} // namespace

TEST_CASE("memory: the fast path decides like the general path, admitted or refused")
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
        store_with_rules fast(rules, now, false), general(rules, now, true);
        microseconds last_wait{0};
        std::uint64_t remaining = 1;
        for (const auto& s : any_schedule()) {
            now += pause_before(s, rules.front(), last_wait);
            const auto cost = cost_of(s, std::max(rules.front().count, rules.front().capacity), remaining);
            const auto one = fast.take(cost, now), two = general.take(cost, now);
            RC_ASSERT(one.result.admitted == two.result.admitted);
            RC_ASSERT(one.result.shadow_refused == two.result.shadow_refused);
            RC_ASSERT(one.result.retry_after == two.result.retry_after);
            RC_ASSERT(one.result.delay == two.result.delay);
            RC_ASSERT(one.result.charged_at == two.result.charged_at);
            RC_ASSERT(one.decisions == two.decisions);
            last_wait = one.result.retry_after;
            remaining = one.decisions.front().remaining;
            ++(one.result.admitted ? admitted : refused);
            shadows += one.result.shadow_refused;
        }
    });
    CHECK(admitted > 100);
    CHECK(refused > 100);
    CHECK(shadows > 10);
}
