// Warnings about events that may come with every request: per subject the first event is logged, then one line per
// period with the number of events since. Of the whole process, as the log is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace headgate {

// Counts events by subject. Subjects come from the configuration, so that their number is bounded. Pure, but for its
// lock: may be called from any thread.
class rare_warnings
{
public:
    using time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::minutes period{1};

    // Notes one event. Returns how many events a line now stands for, this one included; 0: no line is due.
    std::uint64_t note(std::string_view subject, time now);

private:
    struct state
    {
        time logged;
        std::uint64_t since = 0; // events without a line
    };
    std::mutex lock_;
    std::map<std::string, state, std::less<>> subjects_;
};

// Logs the subject, with a detail that a client or an upstream may have sent: it is escaped and cut.
void warn_rarely(std::string_view subject, std::string_view detail = {});

} // namespace headgate
