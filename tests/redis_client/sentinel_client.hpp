// A store over Sentinel, with its own event loop.
#pragma once

#include "tests/redis_client/one_rule.hpp"
#include "tests/redis_client/sentinel_group.hpp"

#include <doctest/doctest.h>

#include <array>

namespace headgate::testing {

// A store over Sentinel, and the result of a take.
struct sentinel_client
{
    struct outcome
    {
        redis::trouble trouble = redis::trouble::confused;
        bool admitted = false;
        decision decided;
    };

    explicit sentinel_client(const sentinel_group& group, std::chrono::microseconds timeout = std::chrono::seconds{5},
                             std::chrono::milliseconds check_interval = std::chrono::seconds{1})
        : loop([&](client_loop& in) { return master = group.source(in, timeout, check_interval); }),
          store(master, {7, std::chrono::seconds{60}})
    {}
    bool becomes_ready()
    {
        const bool is = loop.run_until([&] { return loop.is_ready(); }, std::chrono::seconds{10});
        CHECK_MESSAGE(is, "no master: ", master->why());
        return is;
    }
    task<outcome> take(const rule_group& by, std::string_view key)
    {
        const part wanted{&by, key, {}};
        std::array<decision, max_rules_per_group> decisions;
        verdict v;
        outcome out;
        out.trouble = co_await store.take({&wanted, 1}, decisions, v);
        out.admitted = out.trouble == redis::trouble::none && v.admitted;
        out.decided = decisions[0];
        co_return out;
    }
    outcome take_now(const rule_group& by, std::string_view key)
    {
        outcome out;
        const auto once = [](sentinel_client& self, const rule_group& rules, std::string_view of,
                             outcome& to) -> task<void> { to = co_await self.take(rules, of); };
        CHECK(loop.run(once(*this, by, key, out)));
        return out;
    }
    int port() { return master->current().options().port; }

    std::shared_ptr<redis::sentinel_master> master;
    client_loop loop;
    redis::store store;
};

} // namespace headgate::testing
