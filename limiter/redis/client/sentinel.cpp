#include "limiter/redis/client/sentinel.hpp"

#include "limiter/redis/client/command.hpp"

#include <algorithm>
#include <utility>

namespace headgate::limiter::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view channel = "+switch-master";
constexpr milliseconds first_pause{25}, longest_pause{250}; // between rounds that found no master
constexpr milliseconds suspicion_rest{100};                 // between rounds that error replies cause

task<void> ping(std::shared_ptr<link> to)
{
    const auto write = [](std::string& out) { append_command(out, {"PING"}); };
    co_await to->ask(to->turn_began(), write);
}

} // namespace

sentinel_master::sentinel_master(event_loop& loop, name_resolver& names, sentinel_options options,
                                 link::listener on_change)
    : loop_(loop), names_(names), options_(std::move(options)), on_change_(std::move(on_change)),
      current_(std::make_shared<link>(loop, names, options_.server)), // never begun: there is no master yet
      wake_(loop.get_executor())
{}

void sentinel_master::begin()
{
    for (std::size_t i = 0; i < options_.sentinels.size(); ++i) {
        const auto on_change = [i, weak = weak_from_this()](link::state now, std::string_view why) {
            if (const auto self = weak.lock())
                self->on_sentinel(i, now, why);
        };
        sentinels_.push_back({link_to(options_.sentinel, options_.sentinels[i], on_change), "not connected yet"});
    }
    for (auto& each : sentinels_)
        each.to->begin();
    spawn(loop_.get_executor(), watch(shared_from_this()));
}

void sentinel_master::stop()
{
    if (is_stopped())
        return;
    become(link::state::stopped, "stopped");
    for (auto& each : sentinels_)
        each.to->stop();
    for (const auto& each : {announcer_, current_, tried_}) {
        if (each)
            each->stop();
    }
    wake_.cancel();
    wake_all();
}

void sentinel_master::become(link::state next, std::string_view why)
{
    if (is_stopped() || (state_ == next && why_ == why))
        return;
    state_ = next;
    why_ = why;
    if (on_change_)
        on_change_(next, why_);
}

std::shared_ptr<link> sentinel_master::link_to(link_options options, const server_address& to, link::listener on_change)
{
    options.host = to.host;
    options.port = to.port;
    options.socket.clear();
    return std::make_shared<link>(loop_, names_, std::move(options), std::move(on_change));
}

// ---- notifications from the links. A link calls these functions, so they must not destroy links: they only set flags
// and timers.

void sentinel_master::on_sentinel(std::size_t which, link::state now, std::string_view why)
{
    sentinels_[which].why = why;
    if (now == link::state::ready && state_ != link::state::ready)
        seek_soon();
}

void sentinel_master::on_server(std::uint64_t number, link::state now, std::string_view why)
{
    wake_.cancel(); // try_new_link may be waiting for it
    if (number != generation_ || is_stopped() || now == link::state::stopped)
        return;
    if (now != link::state::ready)
        become(link::state::connecting, address_of(*current_) + ": " + std::string(why));
    seek_soon();
}

void sentinel_master::on_published(std::string_view message)
{
    const auto to = parse_switch(message, options_.master);
    if (!to)
        return;
    ++seen_.announced;
    announced_ = to;
    seek_soon();
}

void sentinel_master::suspect()
{
    ++seen_.suspicions;
    if (!is_seeking_ && loop_.turn_began() - last_round_ >= suspicion_rest)
        seek_soon();
}

void sentinel_master::seek_soon()
{
    if (is_stopped())
        return;
    is_seeking_ = is_due_ = true;
    wake_.cancel();
}

// ---- waiting for another master

task<bool> sentinel_master::reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline)
{
    if (!is_wrong_server(classify(error)))
        co_return false;
    suspect();
    const bool is_found = co_await until_another(way.number, deadline);
    way = route_to(slot);
    co_return is_found;
}

// Waits while a link of another generation is being looked for. Returns whether there is one and it is ready.
task<bool> sentinel_master::until_another(std::uint64_t than, steady_time deadline)
{
    const auto keep = shared_from_this();
    while (generation_ == than && is_seeking_ && !is_stopped() && steady_clock::now() < deadline) {
        steady_timer until(loop_.get_executor(), deadline);
        waiting_.push_back(&until);
        co_await until.async_wait(as_result);
        std::erase(waiting_, &until);
    }
    co_return generation_ != than && current_->now() == link::state::ready;
}

link::counters sentinel_master::seen() const
{
    auto all = former_;
    all.add(current_->seen());
    return all;
}

void sentinel_master::wake_all()
{
    for (auto* const each : std::exchange(waiting_, {}))
        each->cancel();
}

// ---- the search

task<void> sentinel_master::watch([[maybe_unused]] std::shared_ptr<sentinel_master> keep)
{
    while (!is_stopped()) {
        is_due_ = false;
        is_seeking_ = true;
        const bool is_found = co_await seek();
        last_round_ = steady_clock::now();
        failed_rounds_ = is_found ? 0 : failed_rounds_ + 1;
        is_seeking_ = is_due_;
        wake_all();
        if (is_stopped())
            break;
        keep_listening();
        const auto pause = is_found ? options_.check_interval
                                    : std::min(first_pause * (1 << std::min(failed_rounds_, 8u)), longest_pause);
        if (!is_due_)
            co_await nap(last_round_ + pause);
    }
}

// Waits until then, or until wake_ is cancelled.
task<void> sentinel_master::nap(steady_time until)
{
    wake_.expires_at(until);
    co_await wake_.async_wait(as_result);
}

// Keeps a subscription to one sentinel that answers. PING checks it: otherwise its silence would go unnoticed.
void sentinel_master::keep_listening()
{
    const auto now = announcer_ ? announcer_->now() : link::state::waiting;
    if (now == link::state::ready)
        return spawn(loop_.get_executor(), ping(announcer_));
    if (now == link::state::connecting)
        return;
    for (std::size_t i = 1; i <= sentinels_.size(); ++i) {
        const auto next = (announcing_ + i) % sentinels_.size();
        if (sentinels_[next].to->now() != link::state::ready)
            continue;
        if (announcer_)
            announcer_->stop();
        announcing_ = next;
        const auto weak = weak_from_this();
        announcer_ = link_to(options_.sentinel, options_.sentinels[next], [weak](link::state is, std::string_view) {
            const auto self = weak.lock();
            if (self && is == link::state::ready)
                self->seek_soon(); // for announcements before the subscription
        });
        announcer_->subscribe(std::string(channel), [weak](std::string_view message) {
            if (const auto self = weak.lock())
                self->on_published(message);
        });
        return announcer_->begin();
    }
}

} // namespace headgate::limiter::redis
