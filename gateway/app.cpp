#include "gateway/app.hpp"

#include "gateway/load_configuration.hpp"
#include "gateway/restart_needed.hpp"

#include <spdlog/spdlog.h>

#include <csignal>
#include <random>
#include <stdexcept>

namespace headgate {

namespace {

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
    auto plan = addresses_.plan(config.listeners, count);
    addresses_.adopt(plan);
    show_ports();
    if (config.admin)
        admin_ = make_admin(*config.admin, addresses_.actual());
    config_ = compile_config(std::move(config), stores_, clock_.now(), process_id_, nullptr, &guards_);
    snapshots_.use(config_->source.stores, stores_);
    metrics_.watch(stores_, guards_);
    health_.watch(stores_);
    log_.use(config_->source.log.access.path);
    for (unsigned i = 0; i < count; ++i) {
        workers_.push_back(std::make_unique<worker>(i, clock_, config_, log_, health_));
        workers_.back()->listen(std::move(plan.of_worker[i]));
    }
}

app::~app() { stop(); }

void app::start()
{
    for (auto& w : workers_)
        w->start_thread();
    if (admin_)
        admin_->start();
    has_started_ = true;
}

std::unique_ptr<admin> app::make_admin(const config::admin_config& config, std::vector<config::host_port> beside)
{
    auto made = std::make_unique<admin>(config, listen_on(config.address, 1, beside),
                                        admin::sources{[this] { return is_ready(); }, metrics_});
    spdlog::info("admin on {}", made->address().text());
    return made;
}

void app::show_ports()
{
    ports_.clear();
    for (const auto& each : addresses_.all())
        ports_.push_back(each.actual.port);
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
    for (const auto& [store, error] : snapshots_.failing())
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
    snapshots_.stop();
    log_.stop();
    if (admin_)
        admin_->stop();
    retired_.clear();
}

// Throws if a running request could get too many decisions: a request that began before the reload is decided by the
// new rules of its old route's chains, and has room for a fixed number of decisions.
void app::check_room(const config::gateway_config& next) const
{
    for (const auto& route : config_->routes) {
        std::size_t rules = 0;
        for (const auto* chain : route.chains) {
            if (chain->guard) {
                ++rules;
                continue;
            }
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

// `opened` is a new one, or null: then the one that runs has the wanted address already, or none is wanted.
void app::change_admin(const std::optional<config::admin_config>& wanted, std::unique_ptr<admin> opened)
{
    std::erase_if(retired_, [](const auto& each) { return each->has_ended(); });
    if (admin_ && wanted && !opened)
        return admin_->use(*wanted);
    if (admin_) {
        // It keeps its token: what it still answers, it answers to those that had it.
        admin_->retire();
        retired_.push_back(std::move(admin_));
    }
    admin_ = std::move(opened);
    if (admin_ && has_started_)
        admin_->start();
}

void app::reload(config::gateway_config config)
{
    const auto& before = config_->source;
    check_room(config);
    // What can fail comes first.
    std::vector<config::host_port> beside;
    if (admin_)
        beside.push_back(admin_->address());
    auto plan = addresses_.plan(config.listeners, workers_.size(), beside);
    for (const auto& each : plan.addresses)
        beside.push_back(each.actual);
    for (const auto& each : addresses_.actual())
        beside.push_back(each);
    const bool has_admin = admin_ && config.admin &&
                           (same_address(before.admin->address, config.admin->address) ||
                            same_address(admin_->address(), config.admin->address));
    auto opened = config.admin && !has_admin ? make_admin(*config.admin, beside) : nullptr;
    std::optional<log_file> log;
    if (config.log.access.path != before.log.access.path)
        log.emplace(config.log.access.path);
    config_ = compile_config(std::move(config), stores_, clock_.now(), process_id_, config_.get(), &guards_);

    const auto& now = config_->source;
    for (const auto& [_, store] : stores_)
        store->follow_wall(clock_.wall_ahead(), clock_.now()); // new ones
    snapshots_.use(now.stores, stores_);
    metrics_.watch(stores_, guards_);
    health_.watch(stores_);
    if (log)
        log_.use(*log);
    addresses_.adopt(plan);
    show_ports();
    for (std::size_t i = 0; i < workers_.size(); ++i)
        workers_[i]->use(config_, std::move(plan.of_worker[i]));
    change_admin(now.admin, std::move(opened));
    use_log_level(now.log.level);
    for (const auto& warning : restart_needed(now, workers_.size(), stores_, guards_))
        spdlog::warn("{}", to_string(warning));
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
