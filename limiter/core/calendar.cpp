#include "limiter/core/calendar.hpp"

namespace headgate::limiter {

namespace {

using namespace std::chrono;

// Returns the midnight that ends the day, week or month that contains `day`.
local_days next_boundary(calendar_unit unit, local_days day)
{
    switch (unit) {
    case calendar_unit::week:
        return day + days{7} - (weekday{day} - Monday);
    case calendar_unit::month: {
        const year_month_day date{day};
        return local_days{(date.year() / date.month() + months{1}) / 1};
    }
    case calendar_unit::day:
    case calendar_unit::none:
        break;
    }
    return day + days{1};
}

} // namespace

time_point window_end(const rule& r, time_point now)
{
    if (r.align == window_align::first)
        return now + r.period;
    if (r.calendar == calendar_unit::none) {
        const auto since_epoch = now.time_since_epoch();
        return now + (r.period - since_epoch % r.period);
    }
    static const time_zone utc;
    const time_zone& zone = r.zone ? *r.zone : utc;
    const auto second = floor<seconds>(now);
    const local_seconds local{(second + zone.offset_at(second)).time_since_epoch()};
    return zone.to_utc(next_boundary(r.calendar, floor<days>(local)));
}

} // namespace headgate::limiter
