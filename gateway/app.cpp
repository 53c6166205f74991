#include "gateway/app.hpp"

#include "gateway/load_configuration.hpp"
#include "gateway/request/listener.hpp"

#include <spdlog/spdlog.h>

#include <csignal>
#include <stdexcept>
#include <thread>

namespace headgate {

namespace {

unsigned worker_count(const config::gateway_config& config)
{
    return config.workers ? static_cast<unsigned>(config.workers) : std::max(1u, std::thread::hardware_concurrency());
}

// The signals app::run waits for; every other thread has them blocked.
sigset_t handled_signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
        sigaddset(&set, s);
    return set;
}

} // namespace

app::app(config::gateway_config config)
{
    const auto signals = handled_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    setup_ = compile_config(std::move(config), stores_, clock_.now());
    load_snapshots();
    metrics_.watch(stores_);
    log_.use(setup_->config.log.access.path);
    const auto count = worker_count(setup_->config);
    for (unsigned i = 0; i < count; ++i)
        workers_.push_back(std::make_unique<worker>(i, clock_, setup_, log_, health_));
    for (const auto& from : setup_->config.listeners) {
        std::uint16_t port = 0;
        const auto caps = std::make_shared<connection_caps>(from.max_connections, from.max_connections_per_address);
        for (auto& w : workers_) {
            auto l = std::make_unique<listener>(*w, from, caps);
            if (port != 0)
                l->set_port(port);
            l->bind();
            port = l->port();
            w->add_listener(std::move(l));
        }
        ports_.push_back(port);
        spdlog::info("listening on {}", config::host_port{from.address.host, port}.text());
    }
    if (const auto& wanted = setup_->config.admin) {
        admin_ = std::make_unique<admin>(*wanted, admin::sources{[this] { return is_ready(); }, metrics_});
        spdlog::info("admin on {}", admin_->address().text());
    }
}

app::~app() { stop(); }

void app::load_snapshots()
{
    for (const auto& [name, from] : setup_->config.stores) {
        const auto store = stores_.find(name);
        if (!from.snapshot || store == stores_.end())
            continue;
        const auto loaded = limiter::load_snapshot(*store->second, from.snapshot->path, clock_.now());
        if (!loaded.error.empty())
            spdlog::warn("store {}: snapshot {} ignored: {}; counters start afresh", name, from.snapshot->path,
                         loaded.error);
        else if (loaded.found)
            spdlog::info("store {}: {} keys from snapshot {}", name, loaded.keys, from.snapshot->path);
        keepers_.push_back(std::make_unique<limiter::snapshot_keeper>(
            *store->second, from.snapshot->path, from.snapshot->interval, [this] { return clock_.now(); },
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
    if (draining_)
        state.reasons.push_back("draining");
    for (const auto& [store, trouble] : health_.failing())
        (trouble.refuses ? state.reasons : state.warnings).push_back("store " + store + ": " + trouble.why);
    // Limits still hold: a restart would forget what was used, clients notice nothing now.
    std::lock_guard guard(lock_);
    for (const auto& [store, error] : failing_snapshots_)
        state.warnings.push_back("store " + store + ": snapshot failing: " + error);
    return state;
}

void app::drain()
{
    draining_ = true; // readiness first: whoever asks is told before a connection is refused
    for (auto& w : workers_)
        w->drain();
}

void app::stop()
{
    for (auto& w : workers_)
        w->stop();
    for (auto& w : workers_)
        w->join();
    keepers_.clear(); // each saves once more
    log_.stop();
    if (admin_)
        admin_->stop();
}

// A request that began before the reload is judged by the new rules of its old route's chains, and has room for so many
// decisions.
void app::check_room(const config::gateway_config& next) const
{
    for (const auto& route : setup_->routes) {
        std::size_t rules = 0;
        for (const auto* chain : route.chains) {
            const auto then = next.chains.find(chain->name);
            rules += then == next.chains.end() ? 0 : then->second.rules.size();
        }
        if (rules > limiter::max_decisions)
            throw std::runtime_error("the chains of the running route " + route.name +
                                     " would grow to more rules than a request has room for; take them off the route "
                                     "first, in a reload of its own");
    }
}

void app::reload(config::gateway_config config)
{
    check_room(config);
    setup_ = compile_config(std::move(config), stores_, clock_.now());
    metrics_.watch(stores_);
    try {
        log_.use(setup_->config.log.access.path);
    } catch (const std::system_error& error) {
        spdlog::error("{}; the former one is written on", error.what());
    }
    for (auto& w : workers_)
        w->use(setup_);
    const auto& wanted = setup_->config.admin;
    if (admin_ && wanted)
        admin_->use_token(wanted->token);
    metrics_.reloads.add();
}

// A file with errors changes nothing.
void app::reload_from(const std::string& file)
{
    auto loaded = load_configuration(file);
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

// True when every client is gone; false when the time is up or a second signal came.
bool app::wait_until_drained()
{
    const auto signals = handled_signals();
    const auto end = std::chrono::steady_clock::now() + setup_->config.drain_timeout;
    for (;;) {
        std::size_t open = 0;
        for (const auto& w : workers_)
            open += w->open_sessions();
        if (open == 0)
            return true;
        if (std::chrono::steady_clock::now() >= end) {
            spdlog::warn("drain_timeout is over: cutting {} connections", open);
            return false;
        }
        const timespec moment{0, 20'000'000};
        const int again = ::sigtimedwait(&signals, nullptr, &moment);
        if (again == SIGUSR1)
            reopen_logs();
        if (again == SIGTERM || again == SIGINT) {
            spdlog::warn("second signal: cutting {} connections", open);
            return false;
        }
    }
}

int app::run(const std::string& file)
{
    start();
    const auto signals = handled_signals();
    for (;;) {
        int signal = 0;
        if (::sigwait(&signals, &signal) != 0)
            continue;
        if (signal == SIGHUP || signal == SIGUSR1) {
            signal == SIGHUP ? reload_from(file) : reopen_logs();
            continue;
        }
        spdlog::info("draining");
        drain();
        wait_until_drained();
        stop();
        spdlog::info("stopped");
        return 0;
    }
}

} // namespace headgate
