#include "gateway/admin/metrics.hpp"

#include "gateway/log/log_writer.hpp"

#include <limits>
#include <map>

namespace headgate {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using labels = std::vector<ClientMetric::Label>;

// Builds the metric families one after the other, in the order of the output.
class exposition
{
public:
    void family(std::string name, std::string help, MetricType type)
    {
        families_.push_back({std::move(name), std::move(help), type, {}});
    }
    ClientMetric& add(labels with = {})
    {
        auto& metric = families_.back().metric.emplace_back();
        metric.label = std::move(with);
        return metric;
    }
    void value(std::uint64_t value, labels with = {})
    {
        auto& metric = add(std::move(with));
        const auto shown = static_cast<double>(value);
        if (families_.back().type == MetricType::Counter)
            metric.counter.value = shown;
        else
            metric.gauge.value = shown;
    }
    void one(std::string name, std::string help, MetricType type, std::uint64_t shown)
    {
        family(std::move(name), std::move(help), type);
        value(shown);
    }
    std::vector<MetricFamily> take() { return std::move(families_); }

private:
    std::vector<MetricFamily> families_;
};

struct route_sums
{
    std::array<std::uint64_t, 6> answers{};
    std::array<std::uint64_t, duration_bounds_us.size() + 1> durations{};
    std::uint64_t duration_sum_us = 0;
    std::uint64_t delayed = 0, unreadable_costs = 0;
    using by_rule = std::map<std::string, std::uint64_t, std::less<>>;
    by_rule refused, shadow_refused;
};

struct upstream_sums
{
    std::uint64_t open = 0, idle = 0, waiting = 0, failures = 0;
};

struct shared_store_sums
{
    std::uint64_t decisions = 0, failures = 0, lost_corrections = 0, pending_corrections = 0, is_ready = 0;
    std::uint64_t timeouts = 0, reconnects = 0, late_replies = 0, conversions = 0, errors = 0;
    std::uint64_t redirections = 0, lost_reservations = 0;
};

struct sums
{
    std::uint64_t open = 0, accepted = 0, refused = 0, begun = 0, finished = 0, degraded = 0;
    std::map<std::string, route_sums, std::less<>> routes;
    std::map<std::string, upstream_sums, std::less<>> upstreams;
    std::map<std::string, shared_store_sums, std::less<>> shared_stores;

    void add(const worker& w)
    {
        const auto& counted = w.counters();
        finished += counted.finished.read(); // before `begun`: their difference is never negative
        begun += counted.requests.read();
        open += counted.connections.read();
        accepted += counted.accepted.read();
        refused += counted.refused_connections.read();
        degraded += counted.degraded.read();
        w.metrics().each_route([this](std::string_view name, const route_counters& from) {
            auto& to = routes[std::string(name)];
            for (std::size_t i = 0; i < to.answers.size(); ++i)
                to.answers[i] += from.answers[i].read();
            for (std::size_t i = 0; i < to.durations.size(); ++i)
                to.durations[i] += from.durations[i].read();
            to.duration_sum_us += from.duration_sum_us.read();
            to.delayed += from.delayed.read();
            to.unreadable_costs += from.unreadable_costs.read();
            for (const auto& [rule, count] : from.refused)
                to.refused[rule] += count.read();
            for (const auto& [rule, count] : from.shadow_refused)
                to.shadow_refused[rule] += count.read();
        });
        w.metrics().each_upstream([this](std::string_view name, const upstream_counters& from) {
            auto& to = upstreams[std::string(name)];
            to.open += from.open.read();
            to.idle += from.idle.read();
            to.waiting += from.waiting.read();
            to.failures += from.failures.read();
        });
        w.metrics().each_store([this](std::string_view name, const shared_store_counters& from) {
            auto& to = shared_stores[std::string(name)];
            to.decisions += from.decisions.read();
            to.failures += from.failures.read();
            to.lost_corrections += from.lost_corrections.read();
            to.pending_corrections += from.pending_corrections.read();
            to.is_ready += from.is_ready.read();
            to.timeouts += from.timeouts.read();
            to.reconnects += from.reconnects.read();
            to.late_replies += from.late_replies.read();
            to.conversions += from.conversions.read();
            to.errors += from.errors.read();
            to.redirections += from.redirections.read();
            to.lost_reservations += from.lost_reservations.read();
        });
    }
};

void show_routes(exposition& out, const sums& all)
{
    static constexpr const char* classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    out.family("headgate_requests_total", "Requests that ended, by route and class of the answer's status.",
               MetricType::Counter);
    for (const auto& [name, route] : all.routes) {
        for (std::size_t i = 0; i < route.answers.size(); ++i)
            out.value(route.answers[i], {{"route", name}, {"class", classes[i]}});
    }
    out.family("headgate_limited_total", "Requests refused, by route and the rule that refused.", MetricType::Counter);
    for (const auto& [name, route] : all.routes) {
        for (const auto& [rule, count] : route.refused)
            out.value(count, {{"route", name}, {"rule", rule}});
    }
    out.family("headgate_shadow_limited_total", "Requests that a shadow rule would have refused, by route and rule.",
               MetricType::Counter);
    for (const auto& [name, route] : all.routes) {
        for (const auto& [rule, count] : route.shadow_refused)
            out.value(count, {{"route", name}, {"rule", rule}});
    }
    out.family("headgate_delayed_total", "Requests held back by a shaping rule, by route.", MetricType::Counter);
    for (const auto& [name, route] : all.routes)
        out.value(route.delayed, {{"route", name}});
    out.family("headgate_unreadable_costs_total",
               "Costs that could not be read from the answer's settle header, by route; the reserved cost stays.",
               MetricType::Counter);
    for (const auto& [name, route] : all.routes)
        out.value(route.unreadable_costs, {{"route", name}});
    out.family("headgate_request_duration_seconds", "From the request's head to the end of its answer.",
               MetricType::Histogram);
    for (const auto& [name, route] : all.routes) {
        auto& shown = out.add({{"route", name}}).histogram;
        for (std::size_t i = 0; i < route.durations.size(); ++i) {
            shown.sample_count += route.durations[i];
            const bool last = i == duration_bounds_us.size();
            shown.bucket.push_back({shown.sample_count, last ? std::numeric_limits<double>::infinity()
                                                             : static_cast<double>(duration_bounds_us[i]) / 1e6});
        }
        shown.sample_sum = static_cast<double>(route.duration_sum_us) / 1e6;
    }
}

void show_connections(exposition& out, const sums& all)
{
    const auto active = std::min(all.begun - all.finished, all.open);
    out.family("headgate_connections", "Client connections, open now.", MetricType::Gauge);
    out.value(active, {{"state", "active"}});
    out.value(all.open - active, {{"state", "idle"}});
    out.one("headgate_connections_accepted_total", "Client connections accepted.", MetricType::Counter, all.accepted);
    out.one("headgate_connections_refused_total",
            "Client connections closed at once: over a cap, or out of file descriptors.", MetricType::Counter,
            all.refused);
    out.family("headgate_upstream_connections", "Connections to upstream servers, open now.", MetricType::Gauge);
    for (const auto& [name, upstream] : all.upstreams) {
        const auto idle = std::min(upstream.idle, upstream.open);
        out.value(upstream.open - idle, {{"upstream", name}, {"state", "active"}});
        out.value(idle, {{"upstream", name}, {"state", "idle"}});
    }
    out.family("headgate_upstream_waiting", "Requests that wait for a connection to their upstream.",
               MetricType::Gauge);
    for (const auto& [name, upstream] : all.upstreams)
        out.value(upstream.waiting, {{"upstream", name}});
    out.family("headgate_upstream_failures_total",
               "Attempts that failed because of the upstream: refused, reset, timed out, malformed, cut short.",
               MetricType::Counter);
    for (const auto& [name, upstream] : all.upstreams)
        out.value(upstream.failures, {{"upstream", name}});
}

void show_shared_stores(exposition& out, const sums& all)
{
    const auto each = [&](std::string name, std::string help, MetricType type, std::uint64_t shared_store_sums::*what) {
        out.family(std::move(name), std::move(help), type);
        for (const auto& [store, sum] : all.shared_stores)
            out.value(sum.*what, {{"store", store}});
    };
    using sum = shared_store_sums;
    each("headgate_redis_decisions_total", "Chains sent to Redis for a decision.", MetricType::Counter,
         &sum::decisions);
    each("headgate_redis_failures_total", "Calls to Redis without a result. Their requests were decided by on_outage.",
         MetricType::Counter, &sum::failures);
    each("headgate_redis_lost_corrections_total",
         "Refunds and settled costs that did not reach Redis, and are not repeated.", MetricType::Counter,
         &sum::lost_corrections);
    each("headgate_redis_pending_corrections",
         "Refunds, settled costs and ended requests that have failed to reach Redis and are repeated.",
         MetricType::Gauge, &sum::pending_corrections);
    each("headgate_redis_ready_workers", "Workers whose connection to Redis is open and answers.", MetricType::Gauge,
         &sum::is_ready);
    each("headgate_redis_timeouts_total", "Commands without a reply before their timeout.", MetricType::Counter,
         &sum::timeouts);
    each("headgate_redis_connections_total", "Connections made, the first of each worker included.",
         MetricType::Counter, &sum::reconnects);
    each("headgate_redis_late_replies_total", "Replies that came after their command's timeout, and were dropped.",
         MetricType::Counter, &sum::late_replies);
    each("headgate_redis_conversions_total", "Keys converted to other limits.", MetricType::Counter, &sum::conversions);
    each("headgate_redis_errors_total", "Error replies.", MetricType::Counter, &sum::errors);
    each("headgate_redis_redirections_total", "MOVED and ASK of a cluster's nodes, followed.", MetricType::Counter,
         &sum::redirections);
    each("headgate_redis_lost_reservations_total",
         "Parts of chains over several slots that could be neither confirmed nor given back.", MetricType::Counter,
         &sum::lost_reservations);
}

using named_stats = std::vector<std::pair<std::string, limiter::store_stats>>;

void show_stores(exposition& out, const named_stats& stores)
{
    const auto each = [&](std::string name, std::string help, MetricType type,
                          std::uint64_t limiter::store_stats::*what) {
        out.family(std::move(name), std::move(help), type);
        for (const auto& [store, stats] : stores)
            out.value(stats.*what, {{"store", store}});
    };
    using stats = limiter::store_stats;
    each("headgate_store_keys", "Keys that the store holds.", MetricType::Gauge, &stats::keys);
    each("headgate_store_bytes", "Memory of the store's keys.", MetricType::Gauge, &stats::bytes);
    each("headgate_store_evicted_total", "Recovered keys that were evicted to make room for new keys.",
         MetricType::Counter, &stats::evicted);
    each("headgate_store_shared_takes_total",
         "Decisions by shared overflow counters, because the store was full. Above 0: raise max_keys.",
         MetricType::Counter, &stats::shared_takes);
}

} // namespace

void gateway_metrics::watch(const store_map& stores, const guard_map& guards)
{
    std::lock_guard guard(lock_);
    stores_.clear();
    for (const auto& [name, store] : stores)
        stores_.emplace_back(name, store.get());
    guards_ = guards;
}

std::vector<MetricFamily> gateway_metrics::Collect() const
{
    sums all;
    for (const auto& w : workers_)
        all.add(*w);
    named_stats stores;
    guard_map guards;
    {
        std::lock_guard guard(lock_);
        for (const auto& [name, store] : stores_)
            stores.emplace_back(name, store->stats());
        guards = guards_;
    }
    for (const auto& [key, guard] : guards)
        stores.emplace_back(key + ".new_identities", guard->addresses().stats());
    exposition out;
    show_routes(out, all);
    show_connections(out, all);
    show_stores(out, stores);
    show_shared_stores(out, all);
    out.family("headgate_forgotten_identities_total",
               "Identities that a guard forgot before their time. Above 0: raise max_identities.", MetricType::Counter);
    for (const auto& [key, guard] : guards)
        out.value(guard->forgotten(), {{"key", key}});
    out.one("headgate_degraded_total", "Requests decided by overflow counters or by on_outage.", MetricType::Counter,
            all.degraded);
    out.one("headgate_access_log_dropped_total", "Lines of the access log that could not be written.",
            MetricType::Counter, log_.dropped());
    out.family("headgate_config_reloads_total", "Reloads, by result.", MetricType::Counter);
    out.value(reloads.read(), {{"result", "applied"}});
    out.value(refused_reloads.read(), {{"result", "refused"}});
    out.one("headgate_workers", "Worker threads.", MetricType::Gauge, workers_.size());
    out.family("headgate_build_info", "Always 1; the version is its label.", MetricType::Gauge);
    out.value(1, {{"version", HEADGATE_VERSION}});
    return out.take();
}

} // namespace headgate
