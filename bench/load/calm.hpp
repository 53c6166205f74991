// In which moments of a run its cores were its own. A shared machine takes a core away for up to milliseconds at a
// time: who is measured meanwhile is measured together with the machine's neighbours. Latencies are kept with the
// moment at which their requests were due, until it is known which of those were calm. Pure:
// bench/load/missing_time.hpp looks.
#pragma once

#include "bench/load/latency.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace load {

inline constexpr std::chrono::nanoseconds between_looks = std::chrono::microseconds(500);
inline constexpr std::chrono::nanoseconds hardly_taken = std::chrono::microseconds(25);
// Times what was taken: who is loaded by half needs once that, by four fifths four times.
inline constexpr int catching_up = 4;

// What the cores had by then and nobody was seen to get, counted from whenever.
struct look
{
    clock::time_point when;
    std::chrono::nanoseconds missing;
};

// The time between two looks, and how much somebody else took from its beginning on until `told`, on all cores
// together.
struct stretch
{
    clock::time_point begin, end;
    std::chrono::nanoseconds taken;
    clock::time_point told;
};

// The kernel adds to the CPU time of a process that runs on another core only when it stops, or at the next tick: what
// is missing at a look may turn up at a later one. What was taken never does, but it may have been taken any time until
// the look at which least was missing.
inline std::vector<stretch> find_stretches(const std::vector<look>& looks)
{
    std::vector<stretch> all(looks.empty() ? 0 : looks.size() - 1);
    look least{{}, std::chrono::nanoseconds::max()}; // of those that follow
    for (std::size_t i = all.size(); i-- > 0;) {
        const auto &before = looks[i], &after = looks[i + 1];
        if (after.missing <= least.missing)
            least = after;
        all[i] = {before.when, after.when, least.missing - std::min(least.missing, before.missing), least.when};
    }
    return all;
}

// A stretch is calm when hardly anything was taken in it, nor in the next one, where its last requests may still be
// under way, and what was taken before is caught up with. (Requests that take longer than that next one may be caught
// by a pause all the same, as the 10 MiB answers are.)
inline std::vector<bool> find_calm(const std::vector<stretch>& all)
{
    std::vector<bool> calm(all.size());
    auto caught_up = clock::time_point::min();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool ours = all[i].taken <= hardly_taken;
        const bool ours_next = i + 1 == all.size() || all[i + 1].taken <= hardly_taken;
        calm[i] = ours && ours_next && all[i].begin >= caught_up;
        if (!ours)
            caught_up = std::max(caught_up, all[i].told) + catching_up * all[i].taken + between_looks;
    }
    return calm;
}

class calm_latencies
{
public:
    // The first look is some time before the first request that counts: what was taken then has to be caught up with
    // too.
    void look_at_cores(clock::time_point now, std::chrono::nanoseconds missing) { looks_.push_back({now, missing}); }
    clock::time_point next_look() const { return looks_.back().when + between_looks; }
    void add(clock::time_point due, const latency& took) { all_.push_back({due, took}); }

    struct summary
    {
        latencies took;   // of requests that were due in calm moments
        double share = 0; // that they are of all
    };
    summary settle() const
    {
        summary said;
        const auto stretches = find_stretches(looks_);
        const auto calm = find_calm(stretches);
        for (const auto& one : all_) {
            const auto in = std::upper_bound(stretches.begin(), stretches.end(), one.due,
                                             [](auto due, const auto& each) { return due < each.end; });
            if (in != stretches.end() && calm[static_cast<std::size_t>(in - stretches.begin())])
                said.took.add(one.took);
        }
        const auto all = static_cast<double>(std::max<std::size_t>(1, all_.size()));
        said.share = static_cast<double>(said.took.waited.total()) / all;
        return said;
    }

private:
    struct timed
    {
        clock::time_point due;
        latency took;
    };

    std::vector<look> looks_;
    std::vector<timed> all_;
};

} // namespace load
