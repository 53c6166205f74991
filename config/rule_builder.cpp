#include "config/check.hpp"

namespace headgate::config {

namespace {

using limiter::algorithm;
using form = limit_value::form;

constexpr std::uint64_t fastest_per_microsecond =
    10; // above this, rounding to the clock's microseconds becomes visible
constexpr std::uint64_t largest_burst = std::uint64_t{1} << 31U;

class builder
{
public:
    builder(const rule_config& config, const limit_value& limit, built_rule& out)
        : config_(config), limit_(limit), out_(out)
    {}

    void build(std::shared_ptr<const limiter::time_zone> zone)
    {
        auto& rule = out_.rule;
        rule.name = config_.name;
        rule.kind = config_.algorithm;
        rule.count = limit_.count;
        rule.shadow = config_.mode == rule_mode::shadow;
        rule.count_refused = config_.count_refused;
        if (!check_form())
            return;
        if (rule.kind == algorithm::concurrency)
            return check_cost(rule.count);
        rule.period = limit_.period;
        check_rate();
        if (rule.is_bucket())
            return build_bucket();
        if (rule.kind == algorithm::fixed_window)
            build_window(std::move(zone));
        if (rule.kind == algorithm::sliding_log && rule.count > limiter::max_log_records)
            complain("limit", "a sliding_log keeps one record per request, at most " +
                                  std::to_string(limiter::max_log_records) +
                                  "; use sliding_window or token_bucket for larger limits");
        check_cost(rule.count);
    }

private:
    void complain(const char* key, std::string message) { out_.complaints.push_back({key, std::move(message)}); }

    bool check_form()
    {
        const bool wants_count = config_.algorithm == algorithm::concurrency;
        if (limit_.what == form::unlimited || limit_.what == form::blocked)
            complain("limit",
                     "`" + limit_.text + "` is for plans and overrides; a rule needs a limit such as 60/minute");
        else if (wants_count && limit_.what == form::rate)
            complain("limit",
                     "concurrency limits requests in flight and has no period; write only the number, such as 10");
        else if (!wants_count && limit_.what == form::count)
            complain("limit", "the period is missing; write " + limit_.text + "/minute or " + limit_.text + " per 90s");
        else
            return true;
        return false;
    }

    void check_rate()
    {
        const auto us = static_cast<std::uint64_t>(limit_.period.count()); // at most a year, so no overflow
        if (limit_.count > us * fastest_per_microsecond)
            complain("limit", "the rate is above 10,000,000 per second, the highest that is counted exactly");
    }

    void build_bucket()
    {
        auto& rule = out_.rule;
        rule.capacity = capacity();
        if (rule.kind == algorithm::token_bucket && config_.burst == 0U)
            complain("burst", "a bucket of 0 would refuse every request; the minimum is 1");
        else if (rule.capacity > largest_burst)
            complain(config_.burst      ? "burst"
                     : config_.capacity ? "capacity"
                                        : "limit",
                     "at most 2147483648 (2^31) can be admitted at once; set a smaller `burst`");
        else
            check_cost(rule.capacity);
        rule.initial = config_.initial.value_or(rule.capacity);
        if (rule.initial > rule.capacity)
            complain("initial", "this is more than the bucket holds, " + std::to_string(rule.capacity) +
                                    "; lower it, or raise `burst`");
        if (config_.burst && config_.capacity)
            complain("capacity",
                     "`burst` is also given and sets the same value (capacity = burst + 1); keep one of them");
        if (!config_.delay || config_.delay->what == delay_value::form::none)
            return;
        rule.delay_after = config_.delay->after;
        if (config_.delay->after > 0 && config_.delay->after >= rule.capacity)
            complain("delay", "no request would wait, because at most " + std::to_string(rule.capacity) +
                                  " are admitted at once; write a smaller number, or `none`");
        else if (rule.capacity == 1)
            complain("delay", "no request can wait, because at most 1 is admitted at once; add a `burst`");
    }

    std::uint64_t capacity() const
    {
        if (config_.capacity)
            return *config_.capacity;
        switch (config_.algorithm) {
        case algorithm::leaky_bucket:
            return config_.burst.value_or(0) + 1;
        case algorithm::gcra:
            return config_.burst ? *config_.burst + 1 : limit_.count;
        default:
            return config_.burst.value_or(limit_.count);
        }
    }

    void build_window(std::shared_ptr<const limiter::time_zone> zone)
    {
        auto& rule = out_.rule;
        rule.align = config_.align;
        if (config_.align == limiter::window_align::clock) {
            rule.calendar = limit_.calendar;
            rule.zone = std::move(zone);
        }
        if (config_.time_zone != "UTC" && rule.calendar == limiter::calendar_unit::none)
            complain("time_zone", "a time zone applies only to windows of a day, week or month with `align: clock`; "
                                  "remove it, or write the limit as N/day");
    }

    void check_cost(std::uint64_t most)
    {
        const auto cost = minimum_cost(config_.cost);
        if (cost > most)
            complain("cost",
                     "one request costs " + std::to_string(cost) + " and at most " + std::to_string(most) +
                         " are admitted at once, so none would be admitted; lower the cost, or raise the limit");
    }

    const rule_config& config_;
    const limit_value& limit_;
    built_rule& out_;
};

} // namespace

std::uint64_t minimum_cost(const cost_config& cost)
{
    if (!cost.settle.empty())
        return cost.reserve;
    return cost.fixed.value_or(1);
}

built_rule build_rule(const rule_config& config, const limit_value& limit,
                      std::shared_ptr<const limiter::time_zone> zone)
{
    built_rule out;
    builder(config, limit, out).build(std::move(zone));
    return out;
}

} // namespace headgate::config
