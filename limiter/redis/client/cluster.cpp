#include "limiter/redis/client/cluster.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace headgate::limiter::redis {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds try_again_pause{2}; // after TRYAGAIN: keys of the slot are on their way

} // namespace

cluster_links::cluster_links(reactor& in, name_resolver& names, cluster_options options, link::listener told)
    : link_source(true), reactor_(in), names_(names), options_(std::move(options)), told_(std::move(told)),
      nobody_(std::make_shared<link>(in, names, options_.node)), // never begun
      wake_(in), random_(std::random_device{}())
{}

void cluster_links::begin() { start(watch()); }

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
    if (told_)
        told_(next, why_);
}

// ---- whom to ask

route cluster_links::route_to(std::uint16_t slot)
{
    const auto number = map_.master_number(slot);
    if (!number || *number >= masters_.size())
        return {nobody_.get(), 0, false};
    const auto& master = *masters_[*number];
    return {master.to.get(), master.number, false};
}

task<bool> cluster_links::reroute(route& way, std::uint16_t slot, std::string error, steady_time deadline)
{
    const auto keep = shared_from_this();
    const auto said = classify(error);
    if (said == error_class::try_again) {
        if (reactor_.turn_began() + try_again_pause >= deadline)
            co_return false;
        co_await pause(try_again_pause);
        if (const auto still = node_of(way.number); still && way.asking)
            way.to = still->to.get();
        else
            way = route_to(slot);
        co_return !is_stopped();
    }
    if (said == error_class::cluster_down || is_wrong_server(said))
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
        refresh_soon(); // where one slot went, others did
    } else {
        ++seen_.asked;
        to->last_used = reactor_.turn_began();
    }
    const bool is_ready = co_await until_ready(to, deadline);
    way = {to->to.get(), to->number, !is_moved};
    co_return is_ready;
}

task<bool> cluster_links::until_ready(std::shared_ptr<node> wanted, steady_time deadline)
{
    while (wanted->to->now() == link::state::connecting && !is_stopped() && reactor_.turn_began() < deadline)
        co_await wait(deadline);
    co_return wanted->to->now() == link::state::ready;
}

// Until then, or until some link has changed.
task<void> cluster_links::wait(steady_time until)
{
    steady_timer timer(reactor_, until);
    waiting_.push_back(&timer);
    co_await until_expired(timer);
    std::erase(waiting_, &timer);
}

task<void> cluster_links::pause(std::chrono::microseconds time)
{
    const auto keep = shared_from_this();
    const auto end = std::chrono::steady_clock::now() + time;
    while (!is_stopped() && std::chrono::steady_clock::now() < end)
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
    made->last_used = reactor_.turn_began();
    made->trouble = "not connected yet";
    auto options = options_.node;
    options.host = at.host;
    options.port = at.port;
    options.socket.clear();
    const auto told = [number = made->number, weak = weak_from_this()](link::state now, std::string_view why) {
        if (const auto self = weak.lock())
            self->on_node(number, now, why);
    };
    made->to = std::make_shared<link>(reactor_, names_, std::move(options), told);
    others_.push_back(made);
    made->to->begin();
    return made;
}

// Called from inside a link: nothing but flags, words and timers is touched here.
void cluster_links::on_node(std::uint64_t number, link::state now, std::string_view why)
{
    if (is_stopped() || now == link::state::stopped)
        return;
    const auto changed = node_of(number);
    if (changed)
        changed->trouble = now == link::state::ready ? "" : why;
    if (std::find(masters_.begin(), masters_.end(), changed) != masters_.end()) {
        tell();
        if (now != link::state::ready)
            refresh_soon();
    }
    wake_.cancel(); // whoever waits for it in a round
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

// What the masters' links have come to, taken together.
void cluster_links::tell()
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
        return; // they have begun; soon they stand, or there is more to say
    if (masters_.empty())
        add(trouble_.empty() ? "no node has answered yet" : trouble_);
    else if (const auto covered = map_.covered(); covered < slot_count)
        add("nobody serves " + std::to_string(slot_count - covered) + " of the slots");
    become(some_ready   ? link::state::ready
           : some_early ? link::state::connecting
                        : link::state::waiting,
           std::move(why));
}

} // namespace headgate::limiter::redis
