// What one worker counts by route, rule and upstream. The tables are built when a configuration is adopted, so that a
// request only increments counters. Label values are configured names only: no client can create one.
#pragma once

#include "gateway/compiled/config.hpp"
#include "gateway/counter.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate {

class request;

// Upper bounds of the duration histogram.
inline constexpr std::array<std::int64_t, 14> duration_bounds_us{500,       1'000,     2'500,     5'000,     10'000,
                                                                 25'000,    50'000,    100'000,   250'000,   500'000,
                                                                 1'000'000, 2'500'000, 5'000'000, 10'000'000};

struct route_counters
{
    std::array<counter, 6> answers; // by status class; [0]: none was sent
    std::array<counter, duration_bounds_us.size() + 1> durations;
    counter duration_sum_us;
    counter delayed;
    counter unreadable_costs; // answers whose settle header could not be read
    using by_rule = std::map<std::string, counter, std::less<>>;
    by_rule refused;
    by_rule shadow_refused; // by a shadow rule that let the request pass
    // The same counters by pointer, for the rules of the current configuration: a fast lookup for most refusals.
    std::vector<std::pair<const limiter::rule*, counter*>> by_known_rule;

    counter* of_rule(const limiter::rule& refusing);
};

struct upstream_counters
{
    counter open, idle, waiting; // as of the worker's last tick
    counter failures;
};

struct shared_store_counters
{
    counter decisions; // requested from the store
    counter failures;  // calls of any kind without a result
    counter lost_corrections, pending_corrections;
    counter is_ready; // 1: connected and answering, as of the worker's last tick
    counter timeouts, reconnects, late_replies, conversions, errors;
    counter redirections, lost_reservations; // on a cluster
};

class worker_metrics
{
public:
    // Removes what is no longer configured. REQUIRES: called on the worker's thread, or before it runs.
    void adopt(const compiled_config& next);
    void count(const request& r, std::chrono::microseconds took);
    void note_unreadable_cost(const request& r) { of_route(r).unreadable_costs.add(); }
    upstream_counters& of_upstream(std::string_view name);
    shared_store_counters& of_store(std::string_view name);

    // Calls visit(name, counters) for each. May be called from any thread.
    template <class Visit>
    void each_route(Visit visit) const
    {
        std::lock_guard guard(lock_);
        visit(std::string_view(no_route), unrouted_);
        for (const auto& [name, counters] : routes_)
            visit(std::string_view(name), counters);
    }
    template <class Visit>
    void each_upstream(Visit visit) const
    {
        std::lock_guard guard(lock_);
        for (const auto& [name, counters] : upstreams_)
            visit(std::string_view(name), counters);
    }
    template <class Visit>
    void each_store(Visit visit) const
    {
        std::lock_guard guard(lock_);
        for (const auto& [name, counters] : stores_)
            visit(std::string_view(name), counters);
    }
    static constexpr const char* no_route = "(none)"; // the request was malformed, or no route matched

private:
    route_counters& of_route(const request& r);

    mutable std::mutex lock_; // guards the structure of the tables; only the worker's thread changes it
    std::map<std::string, route_counters, std::less<>> routes_;
    std::map<std::string, upstream_counters, std::less<>> upstreams_;
    std::map<std::string, shared_store_counters, std::less<>> stores_;
    route_counters unrouted_;
    upstream_counters forgotten_; // of a configuration that has been replaced
    shared_store_counters forgotten_store_;
    const compiled_config* adopted_ = nullptr; // the one that by_number_ belongs to
    std::vector<route_counters*> by_number_;   // in the order of the compiled_config's routes
};

} // namespace headgate
