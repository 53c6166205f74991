// Builds and owns everything: stores, compiled_config, workers, the access log's writer, the operators' listener.
// Handles signals: TERM and INT drain, HUP reloads, USR1 reopens the access log, a second TERM ends at once.
#pragma once

#include "config/model.hpp"
#include "gateway/admin/admin.hpp"
#include "gateway/admin/metrics.hpp"
#include "gateway/clock.hpp"
#include "gateway/compiled/config.hpp"
#include "gateway/log/log_writer.hpp"
#include "gateway/open_addresses.hpp"
#include "gateway/stores/snapshots.hpp"
#include "gateway/stores/store_health.hpp"
#include "gateway/worker.hpp"

#include <boost/asio/signal_set.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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

    // Adopts a checked configuration as a whole, or throws and changes nothing. Requests in flight end as they began;
    // idle connections of removed addresses are closed, no others.
    void reload(config::gateway_config config);
    // Opens the access log again by its name, after its file was moved away.
    void reopen_logs() { log_.reopen(); }
    gateway_clock& clock() { return clock_; }
    // Follows a step of the wall clock, if there was one.
    void follow_wall_clock();

private:
    task<> obey_signals(asio::signal_set& signals, const std::string& file);
    task<> wait_until_drained(asio::signal_set& signals);
    task<> watch_wall_clock();
    std::size_t open_sessions() const;
    void check_room(const config::gateway_config& next) const;
    std::unique_ptr<admin> make_admin(const config::admin_config& config, std::vector<config::host_port> beside);
    void change_admin(const std::optional<config::admin_config>& wanted, std::unique_ptr<admin> opened);
    void show_ports();
    void reload_from(const std::string& file);
    readiness is_ready() const;

    asio::io_context main_{1}; // of run(): signals, the wall clock
    steady_timer wall_watch_{main_};
    gateway_clock clock_;
    const std::string process_id_; // random, in hex
    store_map stores_;
    guard_map guards_;
    std::shared_ptr<const compiled_config> config_;
    log_writer log_;
    store_health health_;
    std::vector<std::unique_ptr<worker>> workers_;
    gateway_metrics metrics_{workers_, log_};
    snapshots snapshots_{clock_};
    open_addresses addresses_;
    std::vector<std::uint16_t> ports_;
    std::atomic<bool> is_draining_{false};
    bool is_cut_short_ = false; // by a second signal
    bool is_drained_ = false;
    bool has_started_ = false;
    std::unique_ptr<admin> admin_;
    std::vector<std::unique_ptr<admin>> retired_; // of former addresses, until their last answers are sent
};

} // namespace headgate
