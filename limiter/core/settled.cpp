#include "limiter/core/settled.hpp"

#include "limiter/core/bucket.hpp"
#include "limiter/core/windows.hpp"

#include <algorithm>

namespace headgate::limiter {

namespace {

std::uint64_t remaining_after(const meter& m, std::uint64_t left, std::uint64_t charged, std::uint64_t actual)
{
    if (actual >= charged)
        return left - std::min(left, actual - charged);
    return std::min(left + (charged - actual), m.limits.limit());
}

microseconds bucket_reset(const meter& m, microseconds before, std::uint64_t charged, std::uint64_t actual)
{
    // `before` was rounded up to a microsecond. The smallest level that it may stand for is used: where the true result
    // is a whole number of microseconds, that is what comes out.
    wide level = wide{before.count()} * m.ticks_per_us;
    if (before.count() > 0)
        level -= wide{m.ticks_per_us} - 1;
    level += bucket::ticks(m, actual) - bucket::ticks(m, charged);
    return bucket::to_us(m, std::max<wide>(level, 0));
}

// Of a rule of which something is used.
microseconds window_reset(const meter& m, microseconds before, time_point now, std::uint64_t actual)
{
    switch (m.limits.kind) {
    case algorithm::fixed_window:
        return before.count() > 0 ? before : window_end(m.limits, now) - now;
    case algorithm::sliding_window:
        return actual > 0 ? microseconds{2 * m.limits.period.count() - us(now) % m.limits.period.count()} : before;
    case algorithm::sliding_log:
        return actual > 0 ? m.limits.period : before;
    default:
        return before;
    }
}

} // namespace

decision settled(const meter& m, const decision& of, time_point judged_at, std::uint64_t charged, std::uint64_t actual)
{
    if (actual == charged)
        return of;
    auto now = of;
    actual = std::min(actual, max_count);
    now.remaining = remaining_after(m, of.remaining, charged, actual);
    if (m.limits.is_bucket())
        now.reset_after = bucket_reset(m, of.reset_after, charged, actual);
    else if (now.remaining == m.limits.limit())
        now.reset_after = microseconds{0};
    else
        now.reset_after = window_reset(m, of.reset_after, judged_at, actual);
    return now;
}

} // namespace headgate::limiter
