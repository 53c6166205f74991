#include "limiter/redis/slots_in_flight.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headgate::limiter::redis {

namespace {

// How long a correction that failed waits for the next try.
constexpr std::chrono::milliseconds pause_after_failure{300};

using counts = slots_in_flight::counts;

bool is_zero(const counts& all)
{
    return std::all_of(all.begin(), all.end(), [](auto n) { return n == 0; });
}

// Calls `act(to's count, from's number)` for each rule that both have, by its name.
template <class Count, class Act>
void match(const packed_group& to, Count& have, const packed_group& from, std::span<const std::uint64_t> numbers,
           Act act)
{
    for (std::size_t i = 0; i < to.size(); ++i) {
        for (std::size_t k = 0; k < from.size() && k < numbers.size(); ++k) {
            if (to.kind(i) == script_kind::in_flight && from.kind(k) == script_kind::in_flight &&
                to.limits(i).limits.name == from.limits(k).limits.name)
                act(have[i], numbers[k]);
        }
    }
}

} // namespace

slots_in_flight::holding* slots_in_flight::find(std::string_view key, std::uint64_t holder)
{
    const auto in = keys_.find(key);
    if (in == keys_.end())
        return nullptr;
    for (auto& each : in->second.held) {
        if (each.holder == holder)
            return &each;
    }
    return nullptr;
}

// Counts of rules that are gone are dropped: Redis has dropped them too, or will when they expire.
void slots_in_flight::use_rules(entry& in, const shared_rules& rules)
{
    if (in.rules == rules)
        return;
    const auto former = std::exchange(in.rules, rules);
    for (auto& each : in.held) {
        const auto had = std::exchange(each.live, counts(rules->packed().size()));
        if (former)
            match(rules->packed(), each.live, former->packed(), had, [](auto& n, auto m) { n = m; });
    }
}

void slots_in_flight::begin(std::string_view key, const shared_rules& rules, steady_time now, bool ends)
{
    auto in = keys_.find(key);
    if (in == keys_.end()) {
        if (keys_.size() >= most_keys)
            return;
        in = keys_.emplace(std::string(key), entry{}).first;
    }
    if (!ends || !in->second.rules)
        use_rules(in->second, rules);
    auto* h = find(key, holder_);
    if (!h) {
        h = &in->second.held.emplace_back();
        h->holder = holder_;
        h->live.resize(in->second.rules->packed().size());
    }
    h->used = now;
    ++h->calls;
}

void slots_in_flight::done(std::string_view key, std::uint64_t holder)
{
    auto* const h = find(key, holder);
    if (h && h->calls > 0)
        --h->calls;
}

void slots_in_flight::add(std::string_view key, std::uint64_t holder, const packed_group& as,
                          std::span<const std::uint64_t> taken)
{
    auto* const h = find(key, holder);
    if (!h)
        return;
    match(keys_.find(key)->second.rules->packed(), h->live, as, taken, [](auto& n, auto m) { n += m; });
    h->has_changed = true;
}

std::optional<std::uint64_t> slots_in_flight::remove(std::string_view key, std::uint64_t holder, const packed_group& as,
                                                     std::span<const std::uint64_t> ended, steady_time now)
{
    const auto in = keys_.find(key);
    if (in == keys_.end())
        return std::nullopt;
    auto& all = in->second.held;
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const holding& h) {
        return holder == 0 ? !is_zero(h.live) : h.holder == holder;
    });
    if (found == all.rend() || is_zero(found->live))
        return std::nullopt;
    match(in->second.rules->packed(), found->live, as, ended, [](auto& n, auto m) { n -= std::min(n, m); });
    found->has_changed = true;
    found->used = now;
    return found->holder;
}

void slots_in_flight::mark(const std::string& key, holding& h)
{
    if (!std::exchange(h.is_doubtful, true))
        doubtful_.push_back({key, h.holder});
    h.has_changed = true;
}

void slots_in_flight::doubt(std::string_view key, std::uint64_t holder, time_point after, steady_time now)
{
    close(holder);
    auto* const h = find(key, holder);
    if (!h)
        return;
    if (after > h->after) {
        h->after = after;
        h->doubted = now;
    }
    mark(std::string(key), *h);
}

void slots_in_flight::doubt_all()
{
    close(holder_);
    for (auto& [key, in] : keys_) {
        for (auto& each : in.held)
            mark(key, each);
    }
}

std::vector<slots_in_flight::job> slots_in_flight::take_doubtful(std::size_t most, steady_time now)
{
    std::vector<job> all;
    for (auto left = doubtful_.size(); left > 0 && all.size() < most; --left) {
        auto next = std::move(doubtful_.front());
        doubtful_.pop_front();
        auto* const h = find(next.key, next.holder);
        if (!h)
            continue;
        if (h->calls > 0 || h->not_before > now) {
            doubtful_.push_back(std::move(next));
            continue;
        }
        h->has_changed = false;
        if (now - h->doubted >= longest_wait)
            h->after = {};
        const auto& rules = keys_.find(next.key)->second.rules;
        all.push_back({std::move(next.key), h->holder, false, rules, h->live, h->after});
    }
    return all;
}

void slots_in_flight::finished(const job& what, bool has_succeeded, steady_time now)
{
    auto* const h = find(what.key, what.holder);
    if (!h)
        return;
    h->is_doubtful = !has_succeeded || h->has_changed;
    h->not_before = has_succeeded ? now : now + pause_after_failure;
    if (h->is_doubtful)
        doubtful_.push_back({what.key, what.holder});
}

std::vector<slots_in_flight::job> slots_in_flight::take_open()
{
    std::vector<job> all;
    for (auto& [key, in] : keys_) {
        for (auto& each : in.held) {
            if (is_zero(each.live))
                continue;
            if (each.holder == holder_)
                all.push_back({key, each.holder, true, in.rules, each.live, {}});
            else
                mark(key, each);
        }
    }
    return all;
}

void slots_in_flight::forget_unused(steady_time now)
{
    const bool is_crowded = keys_.size() > most_keys / 2;
    for (auto in = keys_.begin(); in != keys_.end();) {
        auto& held = in->second.held;
        std::erase_if(held, [&](const holding& h) {
            return h.calls == 0 && !h.is_doubtful && is_zero(h.live) && (is_crowded || now - h.used >= kept_unused);
        });
        if (held.empty())
            keys_.erase(in++);
        else
            ++in;
    }
}

std::uint64_t slots_in_flight::live(std::string_view key) const
{
    std::uint64_t sum = 0;
    const auto in = keys_.find(key);
    if (in == keys_.end())
        return 0;
    for (const auto& each : in->second.held)
        sum = std::accumulate(each.live.begin(), each.live.end(), sum);
    return sum;
}

} // namespace headgate::limiter::redis
