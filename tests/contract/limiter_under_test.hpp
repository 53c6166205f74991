// The contract that every store must meet, independent of how it keeps its counters. Time is always an argument. A
// store under test is made by a factory; each test executable lists its stores.
#pragma once

#include "limiter/store.hpp"
#include "tests/support/rules.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headgate::testing {

// One key of a chain: its group of rules, and the cost per rule (empty: 1 each).
struct ask
{
    std::string group;
    std::string key;
    std::vector<std::uint64_t> costs = {};
};
using chain = std::vector<ask>;
using reservation = std::uint64_t; // 0: none

struct answer
{
    bool admitted = false;
    bool blocked = false;
    std::size_t blocked_part = 0;
    bool shadow_refused = false;
    microseconds retry_after{-1};
    microseconds delay{0};
    time_point charged_at{};
    std::vector<decision> decisions; // part by part, one per rule
};

class limiter_under_test
{
public:
    virtual ~limiter_under_test() = default;

    virtual void define(const std::string& group, std::vector<rule> rules, time_point now) = 0;
    virtual answer take(const chain& asked, time_point now) = 0;
    virtual answer look(const chain& asked, time_point now) = 0;
    virtual void give_back(const chain& asked, time_point charged_at, time_point now) = 0;
    // Takes, and remembers what was charged under which rules, so that `settle` can correct it later. `id` is 0 when
    // the request was refused.
    virtual answer reserve(const chain& asked, time_point now, reservation& id) = 0;
    // Corrects that charge to `actual`, one cost per rule of each part in order; empty gives all back. False when there
    // is no such reservation.
    virtual bool settle(reservation id, const std::vector<std::uint64_t>& actual, time_point now) = 0;

    virtual std::uint64_t grant(const std::string& group, const std::string& key, std::uint64_t n, time_point now) = 0;
    virtual bool reset(const std::string& group, const std::string& key, time_point now) = 0;
    virtual bool block(const std::string& group, const std::string& key, time_point until, time_point now) = 0;
    virtual bool unblock(const std::string& group, const std::string& key, time_point now) = 0;
    virtual std::optional<key_report> inspect(const std::string& group, const std::string& key, time_point now) = 0;
    virtual std::vector<key_report> list(const std::string& group, const std::string& prefix, time_point now) = 0;

    // Takes n times. Returns how many were admitted.
    int takes(int n, const chain& asked, time_point now)
    {
        int admitted = 0;
        for (int i = 0; i < n; ++i)
            admitted += take(asked, now).admitted ? 1 : 0;
        return admitted;
    }
};

struct named_limiter
{
    std::string name;
    std::function<std::unique_ptr<limiter_under_test>()> make;
};

// Defined by each test executable that runs the contract.
const std::vector<named_limiter>& limiters_under_test();

// Runs a test on a new store of every kind.
template <class Test>
void on_every_store(Test test)
{
    for (const auto& [name, make] : limiters_under_test()) {
        CAPTURE(name);
        const auto store = make();
        test(*store);
    }
}

} // namespace headgate::testing
