// Reads the map of the slots in rounds: asks a node for the map, and makes links to the masters that it names.
#include "limiter/redis/client/cluster.hpp"
#include "limiter/redis/client/command.hpp"

#include <algorithm>
#include <utility>

namespace headgate::limiter::redis {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr microseconds check_interval = seconds{10};
constexpr microseconds first_pause = milliseconds{25}, longest_pause = milliseconds{250}; // while something is wrong
constexpr microseconds least_pause = milliseconds{25}; // between two rounds, also with many redirections
constexpr auto kept_unused = seconds{60};              // how long a node without slots is kept: it may get some

} // namespace

void cluster_links::refresh_soon()
{
    if (is_stopped() || is_due_)
        return;
    is_due_ = true;
    wake_.cancel();
}

task<void> cluster_links::watch([[maybe_unused]] std::shared_ptr<cluster_links> keep)
{
    while (!is_stopped()) {
        is_due_ = false;
        const bool is_found = co_await refresh();
        last_round_ = steady_clock::now();
        if (is_stopped())
            break;
        update_state();
        wake_all();
        failed_rounds_ = is_found && is_whole() ? 0 : failed_rounds_ + 1;
        const auto trying = std::min(first_pause * (1 << std::min(failed_rounds_, 8u)), longest_pause);
        const auto next = last_round_ + spread(failed_rounds_ == 0 ? check_interval : trying);
        while (!is_stopped() && steady_clock::now() < (is_due_ ? last_round_ + least_pause : next))
            co_await nap(is_due_ ? last_round_ + least_pause : next);
    }
}

// Waits until then, or until wake_ is cancelled.
task<void> cluster_links::nap(steady_time until)
{
    wake_.expires_at(until);
    co_await wake_.async_wait(as_result);
}

// Returns whether a node has sent the map.
task<bool> cluster_links::refresh()
{
    ++seen_.rounds;
    drop_unused();
    bool is_found = co_await ask_any(masters_);
    if (!is_found && !is_stopped())
        is_found = co_await ask_seeds();
    co_return is_found;
}

// Asks the nodes in turn, one per round.
task<bool> cluster_links::ask_any(node_list of)
{
    const auto from = ++next_node_;
    for (std::size_t i = 0; i < of.size() && !is_stopped(); ++i) {
        const auto& next = of[(from + i) % of.size()];
        if (next->to->now() != link::state::ready)
            continue;
        const bool has_map = co_await ask_for_map(next);
        if (has_map)
            co_return true;
    }
    co_return false;
}

// Asks the first seed that can be reached. Links to all are made at once; seeds that are no masters are dropped later.
task<bool> cluster_links::ask_seeds()
{
    node_list seeds;
    for (const auto& each : options_.seeds) {
        seeds.push_back(node_at(each));
        seeds.back()->last_used = loop_.turn_began();
    }
    const auto deadline = loop_.turn_began() + options_.node.connect_timeout;
    const auto is_in = [](link::state wanted) {
        return [wanted](const auto& each) { return each->to->now() == wanted; };
    };
    while (!is_stopped()) {
        const auto next = std::find_if(seeds.begin(), seeds.end(), is_in(link::state::ready));
        if (next != seeds.end()) {
            const auto seed = *next;
            seeds.erase(next);
            const bool has_map = co_await ask_for_map(seed);
            if (has_map)
                co_return true;
            continue;
        }
        const bool some_try = std::any_of(seeds.begin(), seeds.end(), is_in(link::state::connecting));
        if (!some_try || steady_clock::now() >= deadline)
            break;
        co_await nap(deadline);
    }
    if (is_stopped())
        co_return false;
    if (masters_.empty()) {
        std::string all;
        for (const auto& each : options_.seeds) {
            const auto tried = node_at(each);
            all += (all.empty() ? "" : "; ") + each.text() + ": " +
                   (tried->trouble.empty() ? std::string("no map") : tried->trouble);
        }
        trouble_ = "no node tells where the slots are: " + all;
    }
    co_return false;
}

task<bool> cluster_links::ask_for_map(std::shared_ptr<node> from)
{
    const auto write = [](std::string& out) { append_command(out, {"CLUSTER", "SLOTS"}); };
    const auto to = from->to;
    const auto got = co_await to->ask(to->turn_began(), write);
    if (got.failed != failure::none) {
        from->trouble = "CLUSTER SLOTS: " + std::string(name_of(got.failed));
        co_return false;
    }
    if (got.value().is_error()) {
        from->trouble = "CLUSTER SLOTS: " + std::string(got.value().text());
        co_return false;
    }
    auto next = slot_map::read(got.value(), from->at.host);
    if (!next || next->covered() == 0) {
        from->trouble = next ? "it knows no node that serves a slot" : "its answer to CLUSTER SLOTS is malformed";
        co_return false;
    }
    from->trouble.clear();
    adopt(std::move(*next));
    co_return true;
}

void cluster_links::adopt(slot_map next)
{
    ++seen_.maps;
    trouble_.clear();
    node_list masters;
    for (const auto& each : next.masters())
        masters.push_back(node_at(each));
    for (const auto& former : masters_) {
        if (std::find(masters.begin(), masters.end(), former) != masters.end())
            continue;
        former->last_used = loop_.turn_began();
        others_.push_back(former);
    }
    std::erase_if(others_,
                  [&](const auto& each) { return std::find(masters.begin(), masters.end(), each) != masters.end(); });
    map_ = std::move(next);
    masters_ = std::move(masters);
}

// Drops nodes without slots, such as replicas among the seeds. Nodes that cannot be reached go sooner.
void cluster_links::drop_unused()
{
    const auto now = loop_.turn_began();
    std::erase_if(others_, [&](const auto& each) {
        const auto kept = each->to->now() == link::state::ready ? kept_unused : seconds{2};
        if (now - each->last_used < kept)
            return false;
        drop(*each);
        return true;
    });
}

// Changes the time randomly by up to a quarter, so that many workers do not ask at the same moment.
microseconds cluster_links::spread(microseconds time)
{
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto quarter = std::max<std::int64_t>(1, time.count() / 4);
    return time - microseconds{quarter} +
           microseconds{static_cast<std::int64_t>((random_ >> 33) % (2 * static_cast<std::uint64_t>(quarter)))};
}

} // namespace headgate::limiter::redis
