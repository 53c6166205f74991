// A slow and obviously correct limiter, to compare the fast one with. It keeps every admitted request and decides from
// the definition alone, from scratch each time, in exact integers. It finds waits by searching for the first moment at
// which the definition admits. It shares no formula with limiter/core.
#pragma once

#include "limiter/core/calendar.hpp"
#include "limiter/core/meter.hpp"

#include <algorithm>
#include <vector>

namespace headgate::testing {

using namespace limiter;

class reference
{
public:
    struct call
    {
        wide at;
        wide cost;
    };

    reference(rule r, time_point first) : rule_(std::move(r))
    {
        // A key that starts with fewer tokens than its capacity behaves as if the missing tokens had just been taken.
        if (rule_.is_bucket() && rule_.initial < rule_.capacity)
            calls_.push_back({us(first), static_cast<wide>(rule_.capacity - rule_.initial)});
    }

    decision judge(time_point now, std::uint64_t cost) const
    {
        const wide at = us(now);
        decision d{.limit = rule_.limit()};
        d.admitted = fits(at, cost);
        reference after = *this;
        if (d.admitted)
            after.add({at, static_cast<wide>(cost)});
        // Returns the largest cost that is admitted, by bisection.
        if (after.fits(at, 0)) {
            std::uint64_t low = 0, high = rule_.limit() + 1;
            while (high - low > 1) {
                const auto middle = low + (high - low) / 2;
                (after.fits(at, middle) ? low : high) = middle;
            }
            d.remaining = low;
        }
        if (rule_.kind == algorithm::concurrency) {
            if (!d.admitted && cost <= rule_.limit())
                d.retry_after = std::chrono::seconds{1}; // a fixed hint: the end of a request is not known
            return d;
        }
        if (!d.admitted && cost <= rule_.limit())
            d.retry_after = first_wait([&](wide wait) { return fits(at + wait, cost); });
        d.reset_after = first_wait([&](wide wait) { return after.used(at + wait).parts == 0; });
        return d;
    }

    void charge(time_point now, std::uint64_t cost)
    {
        if (cost > 0)
            add({us(now), static_cast<wide>(cost)});
    }
    // The clock, which showed `from`, shows `to`: all requests were made earlier by as much. But the requests of a
    // window that begins with the clock are now requests of the window that runs.
    void rewind(time_point from, time_point to)
    {
        if (rule_.follows_wall_clock())
            calls_.erase(calls_.begin(), used(us(from)).parts > 0
                                             ? calls_.begin() + static_cast<std::ptrdiff_t>(first_of_last_window())
                                             : calls_.end());
        else
            phase_ -= us(from) - us(to);
        for (auto& c : calls_)
            c.at = rule_.follows_wall_clock() ? std::min(c.at, us(to)) : c.at - (us(from) - us(to));
    }
    // Forgets a request as if it had never been made.
    void forget(std::size_t i) { calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i)); }
    const std::vector<call>& calls() const { return calls_; }

private:
    // tokens = parts / per_token
    struct amount
    {
        wide parts, per_token;
    };

    static wide us(time_point t) { return t.time_since_epoch().count(); }
    // Returns the start of the sliding window that contains t.
    wide floor_to(wide t, wide period) const { return t - ((t - phase_) % period + period) % period; }

    // The first window of a key without use begins with the clock.
    void add(call c)
    {
        if (rule_.kind == algorithm::sliding_window && used(c.at).parts == 0) {
            calls_.clear();
            phase_ = 0;
        }
        calls_.push_back(c);
    }

    std::size_t first_of_last_window() const
    {
        std::size_t first = 0;
        wide end = 0;
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            if (calls_[i].at >= end) {
                first = i;
                end = us(window_end(rule_, time_point{microseconds{static_cast<std::int64_t>(calls_[i].at)}}));
            }
        }
        return first;
    }

    bool fits(wide at, wide cost) const
    {
        const auto [parts, per_token] = used(at);
        return parts + cost * per_token <= static_cast<wide>(rule_.limit()) * per_token;
    }

    amount used(wide at) const
    {
        const wide period = rule_.period.count();
        switch (rule_.kind) {
        case algorithm::fixed_window:
            return {used_in_fixed_window(at), 1};
        case algorithm::sliding_window: {
            const wide begin = floor_to(at, period);
            return {sum(begin - period, begin) * (period - (at - begin)) + sum(begin, begin + period) * period, period};
        }
        case algorithm::sliding_log:
            return {sum(at - period + 1, at + 1), 1};
        case algorithm::concurrency:
            return {sum(0, at + 1), 1};
        default:
            return {bucket_level(at), period};
        }
    }

    // Returns the cost charged in [from, to).
    wide sum(wide from, wide to) const
    {
        wide total = 0;
        for (const auto& c : calls_)
            total += c.at >= from && c.at < to ? c.cost : 0;
        return total;
    }

    // No interval [s, at] may hold more than capacity + rate x (at - s): the use of a bucket is the largest excess over
    // the rate of any interval that ends now.
    wide bucket_level(wide at) const
    {
        wide level = 0, since = 0;
        for (std::size_t i = calls_.size(); i > 0; --i) {
            since += calls_[i - 1].cost * rule_.period.count();
            level = std::max(level, since - (at - calls_[i - 1].at) * static_cast<wide>(rule_.count));
        }
        return level;
    }

    wide used_in_fixed_window(wide at) const
    {
        wide end = 0, total = 0;
        for (const auto& c : calls_) {
            if (c.at >= end) {
                end = us(window_end(rule_, time_point{microseconds{static_cast<std::int64_t>(c.at)}}));
                total = 0;
            }
            total += c.cost;
        }
        return at >= end ? 0 : total;
    }

    // Returns the shortest wait for which `yes` holds; it holds for every longer wait too.
    template <class Yes>
    static microseconds first_wait(Yes yes)
    {
        if (yes(0))
            return microseconds{0};
        wide low = 0, high = 1;
        while (high < INT64_MAX && !yes(high))
            high *= 2;
        high = std::min<wide>(high, INT64_MAX);
        while (high - low > 1) {
            const wide middle = low + (high - low) / 2;
            (yes(middle) ? high : low) = middle;
        }
        return microseconds{static_cast<std::int64_t>(high)};
    }

    rule rule_;
    std::vector<call> calls_;
    wide phase_ = 0; // of sliding windows: when one of them begins
};

} // namespace headgate::testing
