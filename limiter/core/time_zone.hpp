// The offsets of a time zone from UTC, read from the bytes of a TZif file (RFC 8536), so that "per day" can mean a day
// in Paris. Pure: the caller reads the file.
#pragma once

#include "limiter/core/time.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace headgate::limiter {

class time_zone
{
public:
    // Makes UTC, a zone without transitions.
    time_zone() = default;

    // Returns null when the bytes are not a TZif file or use a feature that this parser does not know.
    static std::shared_ptr<const time_zone> parse(std::string_view tzif);

    // Returns the offset to add to UTC at `at` to get local time.
    std::chrono::seconds offset_at(std::chrono::sys_seconds at) const;

    // Returns the first moment whose local time is `local` or later. For a local time that daylight saving skips: the
    // moment of the change. For one that occurs twice: the earlier moment.
    std::chrono::sys_seconds to_utc(std::chrono::local_seconds local) const;

private:
    // A date of a POSIX TZ footer, Mm.w.d/time: the w-th weekday d of month m (5: the last), at `time` local.
    struct rule_date
    {
        int month = 1;
        int week = 1;
        int weekday = 0;
        std::chrono::seconds time{0};
    };
    struct yearly_rule
    {
        bool has_daylight = false;
        std::chrono::seconds standard{0};
        std::chrono::seconds daylight{0};
        rule_date starts, ends;
    };

    static bool parse_footer(std::string_view text, yearly_rule& out);
    std::chrono::seconds offset_by_rule(std::chrono::sys_seconds at) const;

    std::vector<std::int64_t> transitions_; // UTC seconds, ascending
    std::vector<std::int32_t> offsets_;     // offsets_[i] holds from transitions_[i] on
    std::int32_t first_offset_ = 0;         // before the first transition
    bool has_footer_ = false;
    yearly_rule footer_; // after the last transition
};

} // namespace headgate::limiter
