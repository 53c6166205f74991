// Everything that /metrics shows: the sums of the workers' counters, computed for each scrape, and the state of the
// stores. docs/operations.md lists the names.
#pragma once

#include "gateway/compiled/config.hpp"
#include "gateway/counter.hpp"
#include "gateway/worker.hpp"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace headgate {

class log_writer;

class gateway_metrics final : public prometheus::Collectable
{
public:
    gateway_metrics(const std::vector<std::unique_ptr<worker>>& workers, const log_writer& log)
        : workers_(workers), log_(log)
    {}

    // Adds the stores and guards. To be called after every (re)load; stores are never removed.
    void watch(const store_map& stores, const guard_map& guards);

    // Written by the thread that reloads.
    counter reloads;
    counter refused_reloads;

    // May be called from any thread, once the workers exist.
    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    const std::vector<std::unique_ptr<worker>>& workers_;
    const log_writer& log_;
    mutable std::mutex lock_;
    std::vector<std::pair<std::string, const limiter::memory_store*>> stores_;
    guard_map guards_;
};

} // namespace headgate
