// The memory store as a store of the contract.
#pragma once

#include "limiter/memory/memory_store.hpp"
#include "tests/contract/limiter_under_test.hpp"

#include <algorithm>
#include <map>

namespace headgate::testing {

class memory_under_test : public limiter_under_test
{
public:
    explicit memory_under_test(std::size_t max_keys = 100'000) : store(max_keys) {}

    void define(const std::string& group, std::vector<rule> rules, time_point now) override
    {
        groups[group] = store.define(group, std::move(rules), now);
    }
    answer take(const chain& asked, time_point now) override
    {
        return ask_for(asked, [&](auto parts, auto room) { return store.take(parts, now, room); });
    }
    answer look(const chain& asked, time_point now) override
    {
        return ask_for(asked, [&](auto parts, auto room) { return store.look(parts, now, room); });
    }
    void give_back(const chain& asked, time_point charged_at, time_point now) override
    {
        store.give_back(parts_of(asked), charged_at, now);
    }
    answer reserve(const chain& asked, time_point now, reservation& id) override
    {
        auto taken = take(asked, now);
        id = 0;
        if (taken.admitted) {
            held kept{asked, {}, taken.charged_at};
            for (const auto& a : asked)
                kept.rules.push_back(groups.at(a.group));
            id = ++last_reservation;
            reservations.emplace(id, std::move(kept));
        }
        return taken;
    }
    bool settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now) override
    {
        const auto found = reservations.find(id);
        if (found == reservations.end())
            return false;
        const auto kept = std::move(found->second);
        reservations.erase(found);
        std::span<const std::uint64_t> left(actual);
        for (std::size_t i = 0; i < kept.asked.size(); ++i) {
            const auto& a = kept.asked[i];
            const auto costs = left.first(std::min(left.size(), kept.rules[i]->size()));
            store.correct({kept.rules[i].get(), a.key, a.costs}, costs, kept.charged_at, now);
            left = left.subspan(costs.size());
        }
        return true;
    }
    std::uint64_t grant(const std::string& group, const std::string& key, std::uint64_t n, time_point now) override
    {
        return store.grant(group, key, n, now);
    }
    bool reset(const std::string& group, const std::string& key, time_point now) override
    {
        return store.reset(group, key, now);
    }
    bool block(const std::string& group, const std::string& key, time_point until, time_point now) override
    {
        return store.block(group, key, until, now);
    }
    bool unblock(const std::string& group, const std::string& key, time_point now) override
    {
        return store.unblock(group, key, now);
    }
    std::optional<key_report> inspect(const std::string& group, const std::string& key, time_point now) override
    {
        return store.inspect(group, key, now);
    }
    std::vector<key_report> list(const std::string& group, const std::string& prefix, time_point now) override
    {
        return store.list(group, prefix, 1000, now);
    }

    std::vector<part> parts_of(const chain& asked) const
    {
        std::vector<part> parts;
        for (const auto& a : asked)
            parts.push_back({groups.at(a.group).get(), a.key, a.costs});
        return parts;
    }

    memory_store store;
    std::map<std::string, std::shared_ptr<const rule_group>> groups;

private:
    struct held
    {
        chain asked;
        std::vector<std::shared_ptr<const rule_group>> rules; // as they were when the request was charged
        time_point charged_at;
    };
    std::map<reservation, held> reservations;
    reservation last_reservation = 0;

    template <class Ask>
    answer ask_for(const chain& asked, Ask call)
    {
        const auto parts = parts_of(asked);
        std::vector<decision> room(max_decisions);
        const verdict v = call(std::span<const part>(parts), std::span<decision>(room));
        std::size_t n = 0;
        for (std::size_t i = 0; i < parts.size(); ++i)
            n += v.groups[i]->size();
        room.resize(n);
        return {v.admitted,    v.blocked, v.blocked_part, v.shadow_refused,
                v.retry_after, v.delay,   v.charged_at,   std::move(room)};
    }
};

} // namespace headgate::testing
