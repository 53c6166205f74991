// Which stores are in trouble, for the log and /readyz: shared stores that do not answer, as each worker reports, and
// memory stores that are full. A change of state is logged once per gateway. May be called from any thread.
#pragma once

#include "gateway/compiled/chain.hpp"
#include "limiter/io/asio.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace headgate {

class store_health
{
public:
    struct trouble
    {
        std::string why;
        bool refuses = false;  // requests are refused during the outage
        unsigned severity = 0; // a larger one than before is worth a line in the log; 0: as before
    };
    // From this severity on no key can be decided.
    static constexpr unsigned outage = 1000;

    // `reporter` is a worker's shared_store. After a reload one worker may have two for a moment, and the report of the
    // old one must not hide that of the new one. Returns whether the gateway's state has changed, so that `what` is to
    // be logged: other workers have not reported as much, or all of them are out of the worst.
    bool fails(const std::string& store, const void* reporter, trouble what);
    // Returns whether this was the last worker that had trouble, so that the end is to be logged: after a start, after
    // trouble that was logged, and for another `server` than before.
    bool answers(const std::string& store, const void* reporter, const std::string& server);
    // The reporter has ended.
    void leave(const std::string& store, const void* reporter);
    // Returns one entry per store that at least one worker cannot use.
    std::map<std::string, trouble> failing() const;

    // Counts decisions that failed. Returns the number since the last line in the log, if another one is due: one per
    // second and gateway.
    std::optional<std::uint64_t> count_failures(const std::string& store, std::uint64_t more, steady_time now);
    // Returns true once per five seconds and gateway.
    bool may_tell_of_lost_scripts(const std::string& store, steady_time now);

    // Adds memory stores. They are never removed.
    void watch(const store_map& stores);
    // Looks, at most once per second, which of them were full since the last look, and logs that once per minute.
    void look(steady_time now);
    // Returns the stores in which overflow counters have decided within the last minute.
    std::vector<std::string> full(steady_time now) const;

private:
    struct shared_store_state
    {
        std::map<const void*, trouble> failing;
        unsigned logged = 0;   // the severity that the log shows
        std::string connected; // the server that the log calls connected
        std::uint64_t failures = 0;
        steady_time counted{}, told{};
    };
    struct watched_store
    {
        const limiter::memory_store* store = nullptr;
        std::uint64_t shared_takes = 0, logged_takes = 0; // seen, and told of by the last line
        std::optional<steady_time> was_full, logged;
    };

    mutable std::mutex lock_;
    std::map<std::string, shared_store_state> stores_;
    std::map<std::string, watched_store> memory_stores_;
    steady_time looked_{};
};

} // namespace headgate
