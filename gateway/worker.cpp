#include "gateway/worker.hpp"

#include "gateway/client/listener.hpp"
#include "gateway/stores/shared_store.hpp"
#include "gateway/stores/store_health.hpp"
#include "gateway/upstream/upstream.hpp"

#include <boost/asio/post.hpp>
#include <boost/smart_ptr/make_local_shared.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

namespace headgate {

namespace {

// The longest delay of a deadline.
constexpr std::chrono::milliseconds tick_length{100};

// Writes 16 hexadecimal digits, eight at a time: spreads half bytes to bytes, then turns values above 9 into letters.
void write_hex(std::uint64_t value, char* out)
{
    constexpr std::uint64_t each = 0x0101010101010101u;
    for (int half = 0; half < 2; ++half, value <<= 32) {
        auto x = value >> 32;
        x = (x | x << 16) & 0x0000ffff0000ffffu;
        x = (x | x << 8) & 0x00ff00ff00ff00ffu;
        x = (x | x << 4) & each * 0x0f;
        const auto letters = (x + each * 6) >> 4 & each;
        const auto digits = __builtin_bswap64(x + each * '0' + letters * ('a' - '0' - 10));
        std::memcpy(out + 8 * half, &digits, 8);
    }
}

} // namespace

worker::worker(unsigned number, const gateway_clock& clock, std::shared_ptr<const compiled_config> config,
               log_writer& log, store_health& health)
    : number_(number), clock_(clock), ticker_(loop_.context()), health_(health), access_(log)
{
    adopt(std::move(config));
    std::random_device device;
    write_hex(std::uint64_t{device()} << 32 | device(), id_prefix_.data());
    random_state_ = std::uint64_t{device()} << 32 | device();
}

worker::~worker()
{
    stop();
    join();
    loop_.run(); // a worker that was never started also has coroutines to end
}

void worker::enter(session& s)
{
    sessions_.push_back(s);
    counters_.connections.add();
}

void worker::leave(session& s)
{
    sessions_.erase(sessions_.iterator_to(s));
    counters_.connections.subtract();
}

void worker::enter(request& r)
{
    requests_.push_back(r);
    counters_.requests.add();
}

void worker::leave(request& r) { requests_.erase(requests_.iterator_to(r)); }

std::string_view worker::http_date()
{
    const auto now = std::chrono::floor<std::chrono::seconds>(clock_.moment_now().wall()).time_since_epoch().count();
    if (now != date_second_) {
        date_second_ = now;
        const std::time_t t = now;
        std::tm parts{};
        ::gmtime_r(&t, &parts);
        std::strftime(date_.data(), date_.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    }
    return {date_.data(), 29};
}

std::string_view worker::new_request_id(char* out)
{
    std::copy(id_prefix_.begin(), id_prefix_.end(), out);
    write_hex(++id_next_ * 0x9e3779b97f4a7c15u, out + id_prefix_.size()); // an odd multiplier: no value repeats
    return {out, 2 * id_prefix_.size()};
}

// splitmix64.
std::uint64_t worker::any_up_to(std::uint64_t most)
{
    auto z = random_state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % (most + 1);
}

boost::local_shared_ptr<upstream> worker::upstream_of(const request& r)
{
    if (r.memory->config == config_) [[likely]]
        return upstreams_[r.received.route->upstream_number];
    // After a reload: the request goes to the upstream of its own configuration, on separate connections if necessary.
    return connections_to(r.config().upstreams[r.received.route->upstream_number]);
}

// Returns the existing connections if the upstream is unchanged, else new ones.
boost::local_shared_ptr<upstream> worker::connections_to(const compiled_upstream& wanted)
{
    for (const auto& known : upstreams_) {
        if (known && known->name() == wanted.name && known->config() == *wanted.config)
            return known;
    }
    auto made = boost::make_local_shared<upstream>(*this, wanted.name, *wanted.config);
    if (is_stopping_)
        made->stop();
    return made;
}

std::shared_ptr<shared_store> worker::store_of(const request& r, const compiled_chain& chain) const
{
    if (r.memory->config == config_) [[likely]]
        return shared_stores_[chain.shared_number];
    // After a reload: the store with the same name, if it still exists.
    const auto& name = r.config().shared_stores[chain.shared_number].name;
    const auto found = std::find_if(shared_stores_.begin(), shared_stores_.end(),
                                    [&](const auto& known) { return known->name() == name; });
    return found == shared_stores_.end() ? nullptr : *found;
}

// Returns the existing connection if the store is unchanged, else a new one.
std::shared_ptr<shared_store> worker::store_for(const compiled_shared_store& wanted)
{
    const shared_store* former = nullptr;
    for (const auto& known : shared_stores_) {
        if (known->name() != wanted.name)
            continue;
        if (known->config() == *wanted.config)
            return known;
        former = known.get();
    }
    return std::make_shared<shared_store>(*this, wanted, health_, former);
}

void worker::start_thread()
{
    thread_ = std::thread([this] {
        block_broken_pipes(); // splice has no flag like MSG_NOSIGNAL
        spawn(loop_.get_executor(), tick());
        is_running_ = true;
        for (auto& l : listeners_)
            l->open(l);
        loop_.run();
        access_.flush();
    });
}

void worker::join()
{
    if (thread_.joinable())
        thread_.join();
}

task<> worker::tick()
{
    while (!is_stopping_) { // an expired timer cannot be cancelled any more
        ticker_.expires_after(tick_length);
        co_await ticker_.async_wait(as_result);
        if (is_stopping_)
            break;
        const auto now = loop_.turn_began();
        deadlines_.sweep(now);
        show_upstreams();
        show_stores();
        if (number_ == 0)
            health_.look(now);
        access_.tick(now);
    }
}

void worker::show_upstreams()
{
    for (const auto& known : upstreams_) {
        if (!known)
            continue;
        known->expire_idle();
        auto& shown = metrics_.of_upstream(known->name());
        shown.open.set(known->states().open_connections());
        shown.idle.set(known->states().idle_connections());
        shown.waiting.set(known->states().waiting());
    }
}

void worker::show_stores()
{
    for (const auto& store : shared_stores_) {
        auto& shown = metrics_.of_store(store->name());
        store->tick();
        const auto links = store->store().links().seen();
        const auto& seen = store->store().seen();
        shown.is_ready.set(store->store().links().now() == limiter::redis::link::state::ready ? 1 : 0);
        shown.timeouts.set(links.timeouts);
        shown.reconnects.set(links.connected);
        shown.late_replies.set(links.late_replies);
        shown.conversions.set(seen.conversions);
        shown.errors.set(seen.errors);
        shown.redirections.set(seen.redirections);
        shown.lost_reservations.set(seen.lost_outcomes);
        shown.lost_corrections.set(seen.lost_corrections);
        shown.pending_corrections.set(store->store().pending_corrections());
    }
}

void worker::adopt(std::shared_ptr<const compiled_config> next)
{
    std::vector<boost::local_shared_ptr<upstream>> reached;
    for (const auto& wanted : next->upstreams)
        reached.push_back(wanted.config->echo ? nullptr : connections_to(wanted));
    std::vector<std::shared_ptr<shared_store>> stores;
    for (const auto& wanted : next->shared_stores)
        stores.push_back(store_for(wanted));
    for (auto& gone : shared_stores_) {
        if (std::find(stores.begin(), stores.end(), gone) == stores.end())
            gone->stop();
    }
    shared_stores_ = std::move(stores);
    for (auto& kept : shared_stores_)
        kept->store().forget_rules();
    upstreams_ = std::move(reached); // a request that still uses a removed upstream keeps it until it ends
    request_memories_.clear();       // they refer to the previous configuration
    config_ = std::move(next);
    metrics_.adopt(*config_);
    access_.use(config_->source.log.access);
}

void worker::use(std::shared_ptr<const compiled_config> next, std::vector<wanted_listener> listeners)
{
    asio::post(loop_.context(), [this, next = std::move(next), listeners = std::move(listeners)]() mutable {
        adopt(std::move(next));
        listen(std::move(listeners));
    });
}

void worker::listen(std::vector<wanted_listener> wanted)
{
    if (is_draining_)
        return;
    std::vector<boost::local_shared_ptr<listener>> next;
    for (auto& each : wanted) {
        if (each.socket.is_open()) {
            next.push_back(boost::make_local_shared<listener>(*this, std::move(each)));
            if (is_running_)
                next.back()->open(next.back());
            continue;
        }
        const auto known =
            std::find_if(listeners_.begin(), listeners_.end(), [&](const auto& l) { return l->is_at(*each.caps); });
        (*known)->use(std::move(each.config));
        next.push_back(*known);
    }
    for (auto& before : listeners_) {
        if (std::find(next.begin(), next.end(), before) == next.end())
            before->close();
    }
    listeners_ = std::move(next);
    let_go();
}

void worker::drain()
{
    asio::post(loop_.context(), [this] {
        is_draining_ = true;
        for (auto& l : listeners_)
            l->close();
        let_go();
    });
}

void worker::let_go()
{
    for (auto& s : sessions_)
        s.let_go();
}

void worker::stop()
{
    asio::post(loop_.context(), [this] { cut_all(); });
}

void worker::cut_all()
{
    is_draining_ = is_stopping_ = true;
    ticker_.cancel();
    for (auto& l : listeners_)
        l->close();
    for (auto& s : sessions_)
        s.cut();
    for (auto& r : requests_) {
        if (r.upstream.pool)
            r.upstream.pool->stop();
    }
    for (auto& known : upstreams_) { // requests may still get as far as that
        if (known)
            known->stop();
    }
    for (auto& store : shared_stores_)
        store->stop();
}

} // namespace headgate
