#include "limiter/redis/client/cluster.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace headgate::limiter::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds try_again_pause{2}; // after TRYAGAIN: keys of the slot are being moved

} // namespace

cluster_links::cluster_links(event_loop& loop, name_resolver& names, cluster_options options, link::listener on_change)
    : link_source(true), loop_(loop), names_(names), options_(std::move(options)), on_change_(std::move(on_change)),
      unreachable_(std::make_shared<link>(loop, names, options_.node)), // never begun
      wake_(loop.get_executor()), random_(std::random_device{}())
{}

void cluster_links::begin() { spawn(loop_.get_executor(), watch(shared_from_this())); }

void cluster_links::stop()
{
    if (is_stopped())
        return;
    become(link::state::stopped, "stopped");
    for (const auto* each : {&masters_, &others_}) {
        for (const auto& n : *each)
            n->to->stop();
    }
    wake_.cancel();
    wake_all();
}

void cluster_links::become(link::state next, std::string why)
{
    if (is_stopped() || (state_ == next && why_ == why))
        return;
    state_ = next;
    why_ = std::move(why);
    if (on_change_)
        on_change_(next, why_);
}

// ---- routes

route cluster_links::route_to(std::uint16_t slot)
{
    const auto number = map_.master_number(slot);
    if (!number || *number >= masters_.size())
        return {unreachable_.get(), 0, false};
    const auto& master = *masters_[*number];
    return {master.to.get(), master.number, false};
}

task<bool> cluster_links::reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline)
{
    const auto keep = shared_from_this();
    const auto kind = classify(error);
    if (kind == error_class::try_again) {
        if (loop_.turn_began() + try_again_pause >= deadline)
            co_return false;
        co_await pause(try_again_pause);
        if (const auto still = node_of(way.number); still && way.asking)
            way.to = still->to.get();
        else
            way = route_to(slot);
        co_return !is_stopped();
    }
    if (kind == error_class::cluster_down || is_wrong_server(kind))
        refresh_soon();
    const auto where = parse_redirection(error, way.to->options().host);
    if (!where || is_stopped())
        co_return false;
    const auto to = node_at(where->to);
    const bool is_moved = where->what == redirection::kind::moved;
    if (is_moved) {
        ++seen_.moved;
        map_.apply(*where);
        if (map_.masters().size() > masters_.size()) { // a node that had no slots
            std::erase(others_, to);
            masters_.push_back(to);
        }
        refresh_soon(); // when one slot has moved, others probably have too
    } else {
        ++seen_.ask;
        to->last_used = loop_.turn_began();
    }
    const bool is_ready = co_await until_ready(to, deadline);
    way = {to->to.get(), to->number, !is_moved};
    co_return is_ready;
}

task<bool> cluster_links::until_ready(std::shared_ptr<node> wanted, steady_time deadline)
{
    while (wanted->to->now() == link::state::connecting && !is_stopped() && steady_clock::now() < deadline)
        co_await wait(deadline);
    co_return wanted->to->now() == link::state::ready;
}

// Waits until then, or until a link changes its state.
task<void> cluster_links::wait(steady_time until)
{
    steady_timer timer(loop_.get_executor(), until);
    waiting_.push_back(&timer);
    co_await timer.async_wait(as_result);
    std::erase(waiting_, &timer);
}

task<void> cluster_links::pause(std::chrono::microseconds time)
{
    const auto keep = shared_from_this();
    const auto end = steady_clock::now() + time;
    while (!is_stopped() && steady_clock::now() < end)
        co_await wait(end);
}

void cluster_links::wake_all()
{
    for (auto* const each : std::exchange(waiting_, {}))
        each->cancel();
}

std::vector<std::shared_ptr<link>> cluster_links::servers() const
{
    std::vector<std::shared_ptr<link>> all;
    for (const auto& each : masters_)
        all.push_back(each->to);
    return all;
}

link::counters cluster_links::seen() const
{
    auto all = former_;
    for (const auto* list : {&masters_, &others_}) {
        for (const auto& each : *list)
            all.add(each->to->seen());
    }
    return all;
}

// ---- nodes

std::shared_ptr<cluster_links::node> cluster_links::node_of(std::uint64_t number) const
{
    for (const auto* list : {&masters_, &others_}) {
        for (const auto& each : *list) {
            if (each->number == number)
                return each;
        }
    }
    return nullptr;
}

std::shared_ptr<cluster_links::node> cluster_links::node_at(const server_address& at)
{
    for (const auto* list : {&masters_, &others_}) {
        for (const auto& each : *list) {
            if (each->at == at)
                return each;
        }
    }
    auto made = std::make_shared<node>();
    made->at = at;
    made->number = ++links_made_;
    made->last_used = loop_.turn_began();
    made->trouble = "not connected yet";
    auto options = options_.node;
    options.host = at.host;
    options.port = at.port;
    options.socket.clear();
    const auto on_change = [number = made->number, weak = weak_from_this()](link::state now, std::string_view why) {
        if (const auto self = weak.lock())
            self->on_node(number, now, why);
    };
    made->to = std::make_shared<link>(loop_, names_, std::move(options), on_change);
    others_.push_back(made);
    made->to->begin();
    return made;
}

// Called by a link: it must not destroy links, so it sets flags and timers only.
void cluster_links::on_node(std::uint64_t number, link::state now, std::string_view why)
{
    if (is_stopped() || now == link::state::stopped)
        return;
    const auto changed = node_of(number);
    if (changed)
        changed->trouble = now == link::state::ready ? "" : why;
    if (std::find(masters_.begin(), masters_.end(), changed) != masters_.end()) {
        update_state();
        if (now != link::state::ready)
            refresh_soon();
    }
    wake_.cancel(); // a round that waits for this node
    wake_all();
}

void cluster_links::drop(node& gone)
{
    gone.to->stop();
    former_.add(gone.to->seen());
}

bool cluster_links::is_whole() const
{
    const auto is_ready = [](const auto& each) { return each->to->now() == link::state::ready; };
    return map_.covered() == slot_count && std::all_of(masters_.begin(), masters_.end(), is_ready);
}

// Derives the state of the source from the states of the masters' links.
void cluster_links::update_state()
{
    std::string why;
    bool some_ready = false, some_early = false;
    const auto add = [&](const std::string& more) { why += (why.empty() ? "" : "; ") + more; };
    for (const auto& each : masters_) {
        const auto now = each->to->now();
        some_ready = some_ready || now == link::state::ready;
        some_early = some_early || now == link::state::connecting;
        if (now != link::state::ready)
            add(each->at.text() + ": " + (each->trouble.empty() ? "not connected yet" : each->trouble));
    }
    if (state_ == link::state::connecting && some_early)
        return; // until the links have connected or failed
    if (masters_.empty())
        add(trouble_.empty() ? "no node has answered yet" : trouble_);
    else if (const auto covered = map_.covered(); covered < slot_count)
        add("no node serves " + std::to_string(slot_count - covered) + " of the slots");
    become(some_ready   ? link::state::ready
           : some_early ? link::state::connecting
                        : link::state::waiting,
           std::move(why));
}

} // namespace headgate::limiter::redis
