// A store over a cluster, with its own event loop.
#pragma once

#include "tests/redis_client/cluster_group.hpp"
#include "tests/redis_client/one_rule.hpp"

#include <doctest/doctest.h>

#include <array>

namespace headgate::testing {

struct cluster_client
{
    struct outcome
    {
        redis::trouble trouble = redis::trouble::confused;
        bool admitted = false;
        std::vector<decision> decisions; // of every rule, in order
    };

    explicit cluster_client(redis::cluster_options options)
        : loop([&](client_loop& in) {
              return links = std::make_shared<redis::cluster_links>(in.events, in.names, std::move(options),
                                                                    in.keep_told());
          }),
          store(links, {7, std::chrono::seconds{60}})
    {}
    explicit cluster_client(const cluster_group& group, std::chrono::microseconds timeout = std::chrono::seconds{5})
        : cluster_client(group.client_options(timeout))
    {}

    // Uses up the whole limit.
    bool is_ready() const { return loop.is_ready() && links->why().empty(); }
    bool becomes_ready(std::chrono::milliseconds within = std::chrono::seconds{10})
    {
        const bool is = loop.run_until([&] { return is_ready(); }, within);
        CHECK_MESSAGE(is, "no cluster: ", links->why());
        return is;
    }
    task<outcome> take(std::vector<part> parts)
    {
        std::vector<decision> decisions(max_decisions);
        verdict v;
        outcome out;
        out.trouble = co_await store.take(parts, decisions, v);
        out.admitted = out.trouble == redis::trouble::none && v.admitted;
        std::size_t rules = 0;
        for (const auto& each : parts)
            rules += each.group->size();
        decisions.resize(rules);
        out.decisions = std::move(decisions);
        co_return out;
    }
    outcome take_now(std::vector<part> parts)
    {
        outcome out;
        const auto once = [](cluster_client& self, std::vector<part> all, outcome& to) -> task<void> {
            to = co_await self.take(std::move(all));
        };
        CHECK(loop.run(once(*this, std::move(parts), out)));
        return out;
    }
    outcome take_now(const one_rule& by, std::string_view key) { return take_now({{by.rules.get(), key, {}}}); }
    // Returns the remaining amount; the limit when nothing is used.
    std::uint64_t left(const one_rule& of, const std::string& key)
    {
        std::optional<key_report> report;
        const auto once = [](cluster_client& self, const one_rule& by, const std::string& whose,
                             std::optional<key_report>& to) -> task<void> {
            const auto failed = co_await self.store.inspect(*by.rules, whose, to);
            CHECK(failed == redis::trouble::none);
        };
        CHECK(loop.run(once(*this, of, key, report)));
        return report ? report->decisions.at(0).remaining : of.rules->members()[0].limits.limits.count;
    }

    std::shared_ptr<redis::cluster_links> links;
    client_loop loop;
    redis::store store;
};

} // namespace headgate::testing
