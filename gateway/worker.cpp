#include "gateway/worker.hpp"

#include "gateway/request/listener.hpp"
#include "gateway/request/session.hpp"
#include "gateway/stores/shared_store.hpp"
#include "gateway/upstream/upstream.hpp"

#include <boost/smart_ptr/make_local_shared.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

namespace headgate {

namespace {

// How late a deadline may be noticed.
constexpr std::chrono::milliseconds tick_length{100};
constexpr std::size_t most_spare = 256;

// 16 digits, eight at a time: half bytes spread out to bytes, then 9 < x made letters.
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

struct worker::session_list
{
    boost::intrusive::list<session, boost::intrusive::constant_time_size<false>> all;
};

worker::worker(unsigned number, const gateway_clock& clock, std::shared_ptr<const compiled_config> setup,
               log_writer& log, store_health& health)
    : number_(number), clock_(clock), ticker_(reactor_), health_(health), sessions_(std::make_unique<session_list>()),
      access_(log)
{
    adopt(std::move(setup));
    std::random_device device;
    write_hex(std::uint64_t{device()} << 32 | device(), id_prefix_.data());
    random_state_ = std::uint64_t{device()} << 32 | device();
}

worker::~worker()
{
    stop();
    join();
}

void worker::add_listener(std::unique_ptr<listener> l) { listeners_.push_back(std::move(l)); }

std::unique_ptr<exchange> worker::take_exchange()
{
    if (spare_.empty())
        return std::make_unique<exchange>();
    auto x = std::move(spare_.back());
    spare_.pop_back();
    return x;
}

void worker::give_back(std::unique_ptr<exchange> x)
{
    if (spare_.size() >= most_spare)
        return;
    x->reset();
    x->in.clear();
    if (x->setup != setup_) // a reload came between: nobody else may keep what was replaced
        x->setup.reset();
    spare_.push_back(std::move(x));
}

void worker::enter(session& s)
{
    sessions_->all.push_back(s);
    counters_.connections.add();
}

void worker::leave(session& s)
{
    sessions_->all.erase(sessions_->all.iterator_to(s));
    counters_.connections.subtract();
}

std::string_view worker::http_date()
{
    const auto now = std::chrono::floor<std::chrono::seconds>(clock_.now()).time_since_epoch().count();
    if (now != date_second_) {
        date_second_ = now;
        const std::time_t t = now;
        std::tm parts{};
        ::gmtime_r(&t, &parts);
        std::strftime(date_.data(), date_.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    }
    return {date_.data(), 29};
}

void worker::new_request_id(char* out)
{
    std::copy(id_prefix_.begin(), id_prefix_.end(), out);
    write_hex(++id_next_ * 0x9e3779b97f4a7c15u, out + id_prefix_.size()); // odd multiplier: never the same twice
}

// splitmix64.
std::uint64_t worker::any_up_to(std::uint64_t most)
{
    auto z = random_state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % (most + 1);
}

boost::local_shared_ptr<upstream> worker::upstream_of(const exchange& x)
{
    if (x.setup == setup_) [[likely]]
        return upstreams_[x.route->upstream_number];
    // A reload came between: the request goes where its own configuration says, on connections of its own if need be.
    return connections_to(x.setup->upstreams[x.route->upstream_number]);
}

// Those that are open, when nothing about the upstream has changed.
boost::local_shared_ptr<upstream> worker::connections_to(const compiled_upstream& wanted)
{
    for (const auto& known : upstreams_) {
        if (known && known->name() == wanted.name && known->config() == *wanted.config)
            return known;
    }
    return boost::make_local_shared<upstream>(*this, wanted.name, *wanted.config);
}

std::shared_ptr<shared_store> worker::store_of(const exchange& x, const compiled_chain& chain) const
{
    if (x.setup == setup_) [[likely]]
        return shared_stores_[chain.shared_number];
    // A reload came between: the store of that name, if there still is one.
    const auto& name = x.setup->shared_stores[chain.shared_number].name;
    const auto found = std::find_if(shared_stores_.begin(), shared_stores_.end(),
                                    [&](const auto& known) { return known->name() == name; });
    return found == shared_stores_.end() ? nullptr : *found;
}

// The connection that is open, when nothing about the store has changed.
std::shared_ptr<shared_store> worker::store_for(const compiled_shared_store& wanted)
{
    for (const auto& known : shared_stores_) {
        if (known->name() == wanted.name && known->config() == *wanted.config)
            return known;
    }
    return std::make_shared<shared_store>(*this, wanted, health_);
}

// Redis gives back what a gateway holds in flight when it has not heard of it for a minute.
void worker::renew_slots()
{
    constexpr std::chrono::seconds every{15};
    const auto now = reactor_.turn_began();
    if (shared_stores_.empty() || now - renewed_ < every)
        return;
    renewed_ = now;
    for (auto& s : sessions_->all)
        s.renew_slots();
}

void worker::start_thread()
{
    thread_ = std::thread([this] {
        block_broken_pipes(); // splice has no flag for it
        start(tick());
        for (auto& l : listeners_)
            l->open();
        reactor_.run();
        access_.flush();
    });
}

void worker::join()
{
    if (thread_.joinable())
        thread_.join();
}

task<void> worker::tick()
{
    for (;;) {
        ticker_.expires_after(tick_length);
        const auto woken = co_await until_expired(ticker_);
        if (woken.error || stopping_) // an expired timer is past cancelling
            co_return;
        const auto now = reactor_.turn_began();
        deadlines_.sweep(now);
        for (const auto& known : upstreams_) {
            if (!known)
                continue;
            known->expire_idle();
            auto& shown = metrics_.of_upstream(known->name());
            shown.open.set(known->states().open_connections());
            shown.idle.set(known->states().idle_connections());
            shown.waiting.set(known->states().waiting());
        }
        for (const auto& store : shared_stores_) {
            auto& shown = metrics_.of_store(store->name());
            store->tick();
            const auto links = store->store().links().seen();
            shown.is_ready.set(store->store().links().now() == limiter::redis::link::state::ready ? 1 : 0);
            shown.timeouts.set(links.timeouts);
            shown.reconnects.set(links.connected);
            shown.late_replies.set(links.late_replies);
            shown.conversions.set(store->store().seen().conversions);
            shown.errors.set(store->store().seen().errors);
            shown.redirections.set(store->store().seen().redirections);
            shown.lost_reservations.set(store->store().seen().lost_outcomes);
        }
        renew_slots();
        access_.tick(now);
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
    upstreams_ = std::move(reached); // who still uses one that is gone keeps it until the end of its exchange
    for (auto& spare : spare_)
        spare->setup.reset();
    setup_ = std::move(next);
    metrics_.adopt(*setup_);
    access_.use(setup_->config.log.access);
}

void worker::use(std::shared_ptr<const compiled_config> next)
{
    reactor_.post([this, next = std::move(next)]() mutable { adopt(std::move(next)); });
}

void worker::drain()
{
    reactor_.post([this] {
        draining_ = true;
        for (auto& l : listeners_)
            l->close();
        for (auto& s : sessions_->all)
            s.let_go();
    });
}

void worker::stop()
{
    reactor_.post([this] {
        draining_ = stopping_ = true;
        ticker_.cancel();
        for (auto& l : listeners_)
            l->close();
        for (auto& s : sessions_->all)
            s.cut();
        for (auto& store : shared_stores_)
            store->stop();
        reactor_.stop();
    });
}

} // namespace headgate
