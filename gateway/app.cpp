#include "gateway/app.hpp"

#include "gateway/load_configuration.hpp"
#include "gateway/request/listener.hpp"
#include "gateway/request/listening_socket.hpp"

#include <spdlog/spdlog.h>

#include <csignal>
#include <random>
#include <stdexcept>
#include <thread>

namespace headgate {

namespace {

unsigned worker_count(const config::gateway_config& config)
{
    return config.workers ? static_cast<unsigned>(config.workers) : std::max(1u, std::thread::hardware_concurrency());
}

// Returns the signals that app::run handles; they are blocked in every other thread.
sigset_t handled_signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
        sigaddset(&set, s);
    return set;
}

// Returns 16 hexadecimal digits.
std::string make_process_id()
{
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

void use_log_level(config::log_level level)
{
    switch (level) {
    case config::log_level::debug:
        return spdlog::set_level(spdlog::level::debug);
    case config::log_level::info:
        return spdlog::set_level(spdlog::level::info);
    case config::log_level::warning:
        return spdlog::set_level(spdlog::level::warn);
    case config::log_level::error:
        return spdlog::set_level(spdlog::level::err);
    }
}

} // namespace

app::app(config::gateway_config config) : process_id_(make_process_id())
{
    const auto signals = handled_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    use_log_level(config.log.level);
    const auto count = worker_count(config);
    // Before all else: a gateway that is refused must not write over the files of the one that runs.
    std::vector<listening_sockets> sockets;
    for (const auto& each : config.listeners)
        sockets.push_back(listen_on(each.address, count));
    if (config.admin)
        admin_ = std::make_unique<admin>(*config.admin, admin::sources{[this] { return is_ready(); }, metrics_});
    config_ = compile_config(std::move(config), stores_, clock_.now(), process_id_);
    load_snapshots();
    metrics_.watch(stores_);
    health_.watch(stores_);
    log_.use(config_->source.log.access.path);
    for (unsigned i = 0; i < count; ++i)
        workers_.push_back(std::make_unique<worker>(i, clock_, config_, log_, health_));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        const auto& from = config_->source.listeners[i];
        const auto caps = std::make_shared<connection_caps>(from.max_connections, from.max_connections_per_address);
        for (unsigned k = 0; k < count; ++k)
            workers_[k]->add_listener(
                std::make_unique<listener>(*workers_[k], from, caps, std::move(sockets[i].sockets[k])));
        ports_.push_back(sockets[i].address.port);
        spdlog::info("listening on {}", sockets[i].address.text());
    }
    if (admin_)
        spdlog::info("admin on {}", admin_->address().text());
}

app::~app() { stop(); }

void app::load_snapshots()
{
    for (const auto& [name, from] : config_->source.stores) {
        const auto store = stores_.find(name);
        if (!from.snapshot || store == stores_.end())
            continue;
        const auto loaded = limiter::load_snapshot(*store->second, from.snapshot->path, clock_.now());
        if (!loaded.error.empty())
            spdlog::warn("store {}: snapshot {} ignored: {}; all counters start at zero", name, from.snapshot->path,
                         loaded.error);
        else if (loaded.found)
            spdlog::info("store {}: {} keys from snapshot {}", name, loaded.keys, from.snapshot->path);
        keepers_.push_back(std::make_unique<limiter::snapshot_keeper>(
            *store->second, from.snapshot->path, from.snapshot->interval, [this] { return clock_.moment_now(); },
            [this, name = name](const limiter::snapshot_saved& saved) {
                if (!saved.error.empty())
                    spdlog::error("store {}: snapshot failed: {}", name, saved.error);
                std::lock_guard guard(lock_);
                if (saved.error.empty())
                    failing_snapshots_.erase(name);
                else
                    failing_snapshots_[name] = saved.error;
            }));
    }
}

void app::start()
{
    for (auto& w : workers_)
        w->start_thread();
    if (admin_)
        admin_->start();
}

readiness app::is_ready() const
{
    readiness state;
    if (is_draining_)
        state.reasons.push_back("draining");
    for (const auto& [store, trouble] : health_.failing())
        (trouble.refuses ? state.reasons : state.warnings).push_back("store " + store + ": " + trouble.why);
    // Only warnings: limits still hold; a restart would lose the counters.
    for (const auto& store : health_.full(std::chrono::steady_clock::now()))
        state.warnings.push_back("store " + store + ": full: new keys share overflow counters; raise max_keys");
    std::lock_guard guard(lock_);
    for (const auto& [store, error] : failing_snapshots_)
        state.warnings.push_back("store " + store + ": snapshot failing: " + error);
    return state;
}

void app::drain()
{
    is_draining_ = true; // before the listeners close: a load balancer reads /readyz first
    for (auto& w : workers_)
        w->drain();
}

void app::stop()
{
    for (auto& w : workers_)
        w->stop();
    for (auto& w : workers_)
        w->join();
    keepers_.clear(); // each saves a last snapshot
    log_.stop();
    if (admin_)
        admin_->stop();
}

// Throws if a running request could get too many decisions: a request that began before the reload is decided by the
// new rules of its old route's chains, and has room for a fixed number of decisions.
void app::check_room(const config::gateway_config& next) const
{
    for (const auto& route : config_->routes) {
        std::size_t rules = 0;
        for (const auto* chain : route.chains) {
            const auto then = next.chains.find(chain->name);
            rules += then == next.chains.end() ? 0 : then->second.rules.size();
        }
        if (rules > limiter::max_decisions)
            throw std::runtime_error(
                "the chains of the running route " + route.name +
                " would grow to more rules than a request has room for; remove them from the route "
                "first, in a reload of its own");
    }
}

void app::reload(config::gateway_config config)
{
    check_room(config);
    config_ = compile_config(std::move(config), stores_, clock_.now(), process_id_, config_.get());
    for (const auto& [_, store] : stores_)
        store->follow_wall(clock_.wall_ahead(), clock_.now()); // new ones
    metrics_.watch(stores_);
    health_.watch(stores_);
    try {
        log_.use(config_->source.log.access.path);
    } catch (const std::system_error& error) {
        spdlog::error("{}; the previous access log stays in use", error.what());
    }
    for (auto& w : workers_)
        w->use(config_);
    const auto& wanted = config_->source.admin;
    if (admin_ && wanted)
        admin_->use(*wanted);
    use_log_level(config_->source.log.level);
    metrics_.reloads.add();
}

// Reads the file and reloads. A file with errors changes nothing.
void app::reload_from(const std::string& file)
{
    auto loaded = load_configuration(file, &config_->verified_with);
    for (const auto& problem : loaded.problems)
        spdlog::warn("{}", to_string(problem));
    if (!loaded.config || config::has_errors(loaded.problems)) {
        spdlog::error("reload refused: {} has errors; the running configuration stays", file);
        metrics_.refused_reloads.add();
        return;
    }
    try {
        reload(std::move(*loaded.config));
        spdlog::info("reloaded {}", file);
    } catch (const std::exception& error) {
        spdlog::error("reload refused: {}: {}; the running configuration stays", file, error.what());
        metrics_.refused_reloads.add();
    }
}

std::size_t app::open_sessions() const
{
    std::size_t open = 0;
    for (const auto& w : workers_)
        open += w->open_sessions();
    return open;
}

// Returns when no client is left, when drain_timeout is over, or at a second signal.
task<> app::wait_until_drained(asio::signal_set& signals)
{
    constexpr std::chrono::milliseconds look_again{20};
    steady_timer timer(main_);
    const auto end = std::chrono::steady_clock::now() + config_->source.drain_timeout;
    for (auto open = open_sessions(); open > 0; open = open_sessions()) {
        const bool is_late = std::chrono::steady_clock::now() >= end;
        if (is_late || is_cut_short_) {
            spdlog::warn("{}: cutting {} connections", is_late ? "drain_timeout is over" : "second signal", open);
            break;
        }
        timer.expires_after(look_again);
        co_await timer.async_wait(as_result);
    }
    is_drained_ = true;
    error_code ignored;
    signals.cancel(ignored);
    wall_watch_.cancel();
}

void app::follow_wall_clock()
{
    const auto before = clock_.wall_ahead();
    if (!clock_.follow_wall())
        return;
    const auto now = clock_.moment_now();
    const std::chrono::duration<double> step = now.wall_ahead - before;
    spdlog::warn("the system's clock has stepped by {:+.3f} s; Date, and windows with align: clock, follow it",
                 step.count());
    for (const auto& [_, store] : stores_)
        store->follow_wall(now.wall_ahead, now.time);
}

task<> app::watch_wall_clock()
{
    constexpr std::chrono::milliseconds look_again{200};
    while (!is_drained_) { // an expired timer cannot be cancelled any more
        wall_watch_.expires_after(look_again);
        co_await wall_watch_.async_wait(as_result);
        follow_wall_clock();
    }
}

task<> app::obey_signals(asio::signal_set& signals, const std::string& file)
{
    while (!is_drained_) {
        const auto [error, signal] = co_await signals.async_wait(as_result);
        if (error)
            co_return;
        if (signal == SIGUSR1) {
            reopen_logs();
        } else if (signal == SIGHUP) {
            if (!is_draining_)
                reload_from(file);
        } else if (is_draining_) {
            is_cut_short_ = true;
        } else {
            spdlog::info("draining");
            drain();
            spawn(main_.get_executor(), wait_until_drained(signals));
        }
    }
}

int app::run(const std::string& file)
{
    start();
    asio::signal_set signals(main_, SIGTERM, SIGINT);
    signals.add(SIGHUP);
    signals.add(SIGUSR1);
    const auto set = handled_signals();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr); // in this thread only
    spawn(main_.get_executor(), obey_signals(signals, file));
    spawn(main_.get_executor(), watch_wall_clock());
    main_.run();
    stop();
    spdlog::info("stopped");
    return 0;
}

} // namespace headgate
