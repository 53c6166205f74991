// Builds and owns everything: stores, compiled_config, workers, the access log's writer, the operators' listener.
// Handles signals: TERM and INT drain, HUP reloads, USR1 reopens the access log, a second TERM ends at once.
#pragma once

#include "config/model.hpp"
#include "gateway/admin/admin.hpp"
#include "gateway/admin/metrics.hpp"
#include "gateway/clock.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/log/log_writer.hpp"
#include "gateway/stores/store_health.hpp"
#include "gateway/worker.hpp"
#include "limiter/memory/snapshot.hpp"

#include <boost/asio/signal_set.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headgate {

class app
{
public:
    // Binds every listener first. Throws std::system_error when one cannot be bound.
    explicit app(config::gateway_config config);
    ~app();

    void start();
    // Serves until a signal ends it. Returns the exit status: 0 after a clean drain.
    int run(const std::string& file);

    // Returns the listeners' actual ports, in the order of the file.
    const std::vector<std::uint16_t>& ports() const { return ports_; }
    std::uint16_t admin_port() const { return admin_ ? admin_->address().port : std::uint16_t{0}; }
    void drain();
    void stop();

    // Adopts a checked configuration: limits, routes and answers change at once; no connection is closed.
    void reload(config::gateway_config config);
    // Opens the access log again by its name, after its file was moved away.
    void reopen_logs() { log_.reopen(); }
    gateway_clock& clock() { return clock_; }
    // Follows a step of the wall clock, if there was one.
    void follow_wall_clock();

private:
    void load_snapshots();
    task<> obey_signals(asio::signal_set& signals, const std::string& file);
    task<> wait_until_drained(asio::signal_set& signals);
    task<> watch_wall_clock();
    std::size_t open_sessions() const;
    void check_room(const config::gateway_config& next) const;
    void reload_from(const std::string& file);
    readiness is_ready() const;

    asio::io_context main_{1}; // of run(): signals, the wall clock
    steady_timer wall_watch_{main_};
    gateway_clock clock_;
    const std::string process_id_; // random, in hex
    store_map stores_;
    std::shared_ptr<const compiled_config> config_;
    log_writer log_;
    store_health health_;
    std::vector<std::unique_ptr<worker>> workers_;
    gateway_metrics metrics_{workers_, log_};
    mutable std::mutex lock_;                              // of failing_snapshots_
    std::map<std::string, std::string> failing_snapshots_; // by the store's name: the last error
    std::vector<std::unique_ptr<limiter::snapshot_keeper>> keepers_;
    std::vector<std::uint16_t> ports_;
    std::atomic<bool> is_draining_{false};
    bool is_cut_short_ = false; // by a second signal
    bool is_drained_ = false;
    std::unique_ptr<admin> admin_;
};

} // namespace headgate
